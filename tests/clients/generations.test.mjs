// What only some of the clients have, or do in a way of their own.
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';

import { CHECK, Office, VALUES } from './office.mjs';

for (const version of ['3102', '3476']) {
  describe(`before 5018: ${version}`, () => {
    const { original } = new Office(version);

    test('a connection and a wallet are made without any body', async () => {
      assert.equal((await original.credentials.createConnection()).state, 'Invited');
      assert.ok((await original.wallet.createWallet()).walletId);
    });
  });
}

describe('before 3476: 3102', () => {
  const office = new Office('3102');

  test('the records of a definition are purged', async () => {
    await office.define();
    const { definitionId } = office.definition;
    await office.hold();
    assert.equal((await office.credentials.listCredentials({ definitionId })).length, 1);
    await office.credentials.purgeCredentials(definitionId);
    assert.equal((await office.credentials.listCredentials({ definitionId })).length, 0);
  });
});

for (const version of ['3476', '5018']) {
  describe(`since 3476: ${version}`, () => {
    const office = new Office(version);

    test('a record is deleted without revoking', async () => {
      await office.define();
      const { walletId, held, credentialId } = await office.hold();
      await office.credentials.deleteCredential(credentialId);
      const gone = { statusCode: 404, code: 'not_found' };
      await assert.rejects(office.credentials.getCredential(credentialId), gone);
      assert.equal((await office.wallet.getCredential(walletId, held)).state, 'Issued');
    });
  });
}

describe('since 5018', () => {
  const office = new Office('5018');
  const { credentials, wallet } = office;

  before(() => office.define());

  test('a holder proposes what the verifier then asks for', async () => {
    const { walletId, connectionId, mine } = await office.hold();
    const proposed = await wallet.proposeVerification(walletId, mine.connectionId, CHECK);
    assert.equal(proposed.state, 'Proposed');
    const [seen] = await credentials.listVerifications({ connectionId });
    assert.equal(seen.proposal.proposedPredicates[0].threshold, 2020);
    await credentials.sendVerificationFromProposal(connectionId, seen.verificationId);
    await wallet.submitVerificationAutoSelect(walletId, proposed.verificationId);
    assert.equal((await credentials.getVerification(seen.verificationId)).isValid, true);
  });

  test('a request by link is looked at, and answered with chosen credentials', async () => {
    const { walletId } = await office.hold();
    const asked = await credentials.createVerificationFromParameters(CHECK);
    const verificationData = asked.verificationRequestData;
    const fitting = await wallet.getAvailableCredentialsForParameters(walletId, verificationData);
    const parameters = fitting.map(({ policyName, availableCredentials: [{ credentialId }] }) => (
      { policyName, credentialId }
    ));
    await wallet.submitVerificationForParameters(walletId, { body: { verificationData, parameters } });
    assert.equal((await credentials.getVerification(asked.verificationId)).isValid, true);
  });

  test('what is valid now is judged when the answer comes', async () => {
    const holder = await office.hold();
    const now = { ...CHECK, revocationRequirement: { validNow: true } };
    assert.equal((await office.verify(holder, now)).isValid, true);
    await credentials.revokeCredential(holder.credentialId);
    assert.equal((await office.verify(holder, now)).isValid, false);
  });

  test('a holder deletes an offer, a request and a connection', async () => {
    const { walletId, connectionId, mine } = await office.meet();
    const { credentialId } = await office.offer({ connectionId });
    const [{ credentialId: offer }] = await wallet.listCredentials(walletId);
    await wallet.deleteCredential(walletId, offer);
    assert.equal((await credentials.getCredential(credentialId)).state, 'Rejected');
    const { verificationId } = await credentials.sendVerificationFromParameters(connectionId, CHECK);
    const [{ verificationId: request }] = await wallet.listVerifications(walletId);
    await wallet.deleteVerification(walletId, request);
    assert.equal((await credentials.getVerification(verificationId)).state, 'Rejected');
    await wallet.deleteConnection(walletId, mine.connectionId);
    assert.equal((await wallet.listConnections(walletId)).length, 0);
  });

  test('a further definition is made for a schema', async () => {
    const { schemaId, definitionId } = office.definition;
    const made = await credentials.createCredentialDefinitionForSchemaId(schemaId, { tag: 'second' });
    assert.deepEqual(made.attributes, Object.keys(VALUES));
    assert.notEqual(made.definitionId, definitionId);
    await credentials.deleteCredentialDefinition(made.definitionId);
  });

  test('the wallet API is healthy, and knows no stranger', async () => {
    await wallet.health();
    const stranger = new Office('5018', { accessToken: 'agt_nobody' });
    const answer = await stranger.wallet.listWallets(); // this client resolves a 401 with its body
    assert.equal(answer._response.status, 401);
    await assert.rejects(stranger.credentials.listConnections(), { statusCode: 401 });
  });
});
