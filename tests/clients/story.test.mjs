// The whole story with each of the published clients. Every step follows the one before at once:
// what it needs is finished when a call returns.
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';

import { CHECK, DOT, Office, VALUES } from './office.mjs';

for (const version of ['3102', '3476', '5018']) {
  describe(version, () => {
    const office = new Office(version);
    const { credentials, taker, wallet } = office;

    before(() => office.define());

    test('a hosted wallet accepts an invitation and both are connected', async () => {
      const { walletId, connectionId, mine } = await office.meet();
      assert.equal(mine.state, 'Connected');
      assert.ok(Array.isArray(mine.endpoint.verkey));
      const theirs = await credentials.getConnection(connectionId);
      assert.equal(theirs.state, 'Connected');
      assert.ok(theirs.createdAtUtc instanceof Date);
      const [listed] = await wallet.listConnections(walletId);
      assert.equal(listed.connectionId, mine.connectionId);
      assert.equal((await wallet.listInvitations(walletId)).length, 0);
    });

    test('an invitation is accepted by its link too', async () => {
      const chosen = { walletId: `rex-${version}`, ownerName: 'Rex' };
      assert.equal((await wallet.createWallet(chosen)).walletId, chosen.walletId);
      const invited = await credentials.createConnection({});
      const mine = await wallet.acceptInvitation(chosen.walletId, invited.invitationUrl);
      assert.equal(mine.state, 'Connected');
    });

    test('a credential is issued after it was requested, with other values', async () => {
      const { walletId, connectionId } = await office.meet();
      const offered = await office.offer({ connectionId });
      assert.equal(offered.state, 'Offered');
      const [seen] = await wallet.listCredentials(walletId);
      await wallet.acceptCredentialOffer(walletId, seen.credentialId);
      assert.equal((await credentials.getCredential(offered.credentialId)).state, 'Requested');
      const body = { name: 'Max', year: '2018' };
      await credentials.issueCredential(offered.credentialId, { body });
      const held = await wallet.getCredential(walletId, seen.credentialId);
      assert.equal(held.state, 'Issued');
      assert.deepEqual(held.values, body);
      assert.ok(held.acceptedAtUtc >= offered.issuedAtUtc);
    });

    test('a state that the client does not know is listed', async () => {
      const { walletId, connectionId, mine } = await office.meet();
      const proposed = await office.propose(walletId, mine.connectionId);
      const [held] = await wallet.listCredentials(walletId);
      const [seen] = (await credentials.listCredentials()).filter((one) => one.connectionId === connectionId);
      assert.equal(held.credentialId, proposed.credentialId);
      for (const one of [held, seen]) {
        assert.equal(one.state, 'Proposed');
        assert.equal(one.schemaId, '');
        assert.ok(one.issuedAtUtc instanceof Date);
      }
    });

    test('a credential is issued as soon as it is accepted', async () => {
      const { walletId, connectionId, credentialId, held } = await office.hold();
      assert.equal((await wallet.getCredential(walletId, held)).state, 'Issued');
      const [issued] = await credentials.listCredentials({ connectionId, state: 'Issued' });
      assert.equal(issued.credentialId, credentialId);
      assert.deepEqual(issued.values, VALUES);
    });

    test('a credential is taken by its link, and a proof is given by its data', async () => {
      const walletId = await office.host();
      const offered = await office.offer({ automaticIssuance: true });
      assert.equal((await taker.acceptCredential(walletId, offered.offerUrl)).state, 'Issued');
      assert.equal((await credentials.getCredential(offered.credentialId)).state, 'Issued');
      const { policyId } = await credentials.createVerificationPolicy(CHECK);
      const asked = await credentials.createVerificationFromPolicy(policyId);
      await taker.submitVerificationFromDataAutoSelect(walletId, asked.verificationRequestData);
      const result = await credentials.getVerification(asked.verificationId);
      assert.deepEqual([result.state, result.isValid], ['Accepted', true]);
      assert.equal(result.proof.Name.value, 'Rex');
    });

    test('a credential is taken by its data and issued later', async () => {
      const walletId = await office.host();
      const offered = await office.offer();
      const taken = await taker.acceptCredential(walletId, offered.offerData);
      assert.equal(taken.state, 'Requested');
      await credentials.issueCredential(offered.credentialId);
      assert.equal((await wallet.getCredential(walletId, taken.credentialId)).state, 'Issued');
    });

    test('a proof of given parameters is asked for by a link', async () => {
      const { walletId } = await office.hold();
      const asked = await credentials.createVerificationFromParameters(CHECK);
      await taker.submitVerificationFromDataAutoSelect(walletId, asked.verificationRequestUrl);
      assert.equal((await credentials.getVerification(asked.verificationId)).isValid, true);
    });

    test('a proof is true', async () => {
      const holder = await office.hold();
      const result = await office.verify(holder);
      assert.deepEqual([result.state, result.isValid], ['Accepted', true]);
      assert.deepEqual([result.proof.Name.value, result.proof.Name.revealed], ['Rex', true]);
      assert.deepEqual(result.proof.Name.attributes, { name: 'Rex' }); // the applications read this
      assert.equal(result.proof['Old enough'].value, 'true');
      assert.ok(result.verifiedAtUtc instanceof Date);
      assert.equal((await credentials.verifyVerification(result.verificationId)).valid, true);
      const { walletId, mine } = holder;
      const [seen] = await wallet.listVerificationsForConnection(walletId, mine.connectionId);
      assert.deepEqual([seen.isValid, seen.proof.Name.value], [true, 'Rex']);
    });

    test('a predicate that does not hold gives false', async () => {
      const result = await office.verify(await office.hold({ ...VALUES, year: '2021' }));
      assert.deepEqual([result.state, result.isValid], ['Accepted', false]);
    });

    test('a credential is chosen and its value hidden', async () => {
      const { walletId, connectionId } = await office.hold();
      const { policyId } = await credentials.createVerificationPolicy(CHECK);
      await credentials.sendVerificationFromPolicy(connectionId, policyId);
      const [{ verificationId }] = await wallet.listVerifications(walletId);
      const fitting = await wallet.getAvailableCredentialsForVerification(walletId, verificationId);
      const chosen = fitting.map(({ policyName, availableCredentials: [{ credentialId }] }) => (
        { policyName, credentialId, hidden: policyName === 'Name' }
      ));
      assert.deepEqual(chosen.map((one) => one.policyName), ['Name', 'Old enough']);
      await wallet.submitVerification(walletId, verificationId, chosen);
      const [result] = await credentials.listVerifications({ connectionId });
      assert.deepEqual([result.isValid, result.proof.Name.revealed], [true, false]);
      assert.equal(result.proof.Name.value, undefined);
      assert.equal((await wallet.getVerification(walletId, verificationId)).policy.name, CHECK.name);
    });

    test('a revoked credential is revoked on both sides and proves nothing', async () => {
      const holder = await office.hold();
      const now = () => ({ ...CHECK, revocationRequirement: { validAt: new Date() } });
      assert.equal((await office.verify(holder, now())).isValid, true);
      await credentials.revokeCredential(holder.credentialId);
      assert.equal((await credentials.getCredential(holder.credentialId)).state, 'Revoked');
      assert.equal((await wallet.getCredential(holder.walletId, holder.held)).state, 'Revoked');
      const result = await office.verify(holder, now());
      assert.deepEqual([result.state, result.isValid], ['Accepted', false]);
    });

    test('messages are sent, listed and read', async () => {
      const { connectionId } = await office.meet();
      await credentials.sendMessage({ connectionId, text: 'Sit!' });
      const [sent] = await credentials.listMessages(connectionId);
      assert.deepEqual([sent.text, sent.direction], ['Sit!', 'Outgoing']);
      const read = await credentials.getMessage(sent.id);
      assert.deepEqual([read.text, read.timestamp], ['Sit!', sent.sentTime]);
    });

    test('webhooks are registered, switched and removed', async () => {
      const wanted = { url: 'http://127.0.0.1:1024/events', type: 'Notification' };
      const made = await credentials.createWebhook(wanted);
      const only = async () => {
        const [{ id, url, type, enabled }, ...others] = await credentials.listWebhooks();
        assert.deepEqual([id, { url, type }, others.length], [made.id, wanted, 0]);
        return enabled;
      };
      assert.equal(await only(), true);
      await credentials.disableWebhook(made.id);
      assert.equal(await only(), false);
      await credentials.enableWebhook(made.id);
      assert.equal(await only(), true);
      await credentials.removeWebhook(made.id);
      assert.equal((await credentials.listWebhooks()).length, 0);
    });

    test('schemas, definitions and policies are made, read and deleted', async () => {
      const cat = { name: 'Cat licence', version: '1.0', attributeNames: ['name', 'year'] };
      const { body: schemaId } = await credentials.createSchema(cat);
      const schema = (await credentials.listSchemas()).find((one) => one.id === schemaId);
      assert.deepEqual(schema.attributeNames, cat.attributeNames);
      const { definitionId } = office.definition;
      const definition = await credentials.getCredentialDefinition(definitionId);
      assert.deepEqual([definition.name, definition.supportsRevocation], ['Dog licence', true]);
      const { policyId } = await credentials.createVerificationPolicy(CHECK);
      const policy = await credentials.getVerificationPolicy(policyId);
      assert.equal(policy.predicates[0].predicateValue, 2020);
      await credentials.deleteVerificationPolicy(policyId);
      const left = await credentials.listVerificationPolicies();
      assert.ok(left.every((one) => one.policyId !== policyId));
    });

    test('a verification definition is kept and sent', async () => {
      const compared = { predicateType: '<=', predicateValue: 2020, pType: '<=', pValue: 2020 };
      const made = await credentials.createVerificationDefinition({
        name: 'Licence check',
        version: '1.0',
        requestedAttributes: { Name: { name: 'name' } },
        requestedPredicates: { 'Old enough': { name: 'year', ...compared } },
      });
      const { proofRequest } = await credentials.getVerificationDefinition(made.id);
      const { predicateValue, pValue } = proofRequest.requestedPredicates['Old enough'];
      assert.equal(version === '5018' ? pValue : predicateValue, 2020);
      const { walletId, connectionId } = await office.hold();
      const sent = { verificationDefinitionId: made.id, connectionId };
      const { verificationId, definitionId } = await credentials.createVerification(sent);
      assert.equal(definitionId, made.id);
      const [seen] = await wallet.listVerifications(walletId);
      await wallet.submitVerificationAutoSelect(walletId, seen.verificationId);
      assert.equal((await credentials.getVerification(verificationId)).isValid, true);
      await credentials.deleteVerificationDefinition(made.id);
    });

    test('wallets and connections are listed and deleted', async () => {
      const { walletId, connectionId } = await office.meet();
      const mine = async () => (await wallet.listWallets()).filter((one) => one.walletId === walletId);
      assert.deepEqual((await mine()).map((one) => one.name), ['Rex']);
      await credentials.deleteConnection(connectionId);
      const gone = { statusCode: 404, code: 'not_found' };
      await assert.rejects(credentials.getConnection(connectionId), gone);
      await wallet.deleteWallet(version === '5018' ? walletId : { walletId });
      assert.deepEqual(await mine(), []);
    });

    test('a picture is published', async () => {
      const { body: address } = await credentials.uploadImage(DOT, { filename: 'dot.png' });
      assert.equal((await fetch(address)).headers.get('content-type'), 'image/png');
    });

    test('an organization reads itself and its network', async () => {
      const [mine] = await credentials.listTenants();
      assert.equal((await credentials.getTenant(mine.tenantId)).name, version);
      assert.equal((await credentials.listNetworks())[0].networkId, 'local');
      assert.equal((await credentials.getIssuerStatus()).requireAcceptance, false);
      await credentials.acceptTransactionAuthorAgreement(mine.tenantId);
      await credentials.health();
    });

    test('a wrong use is refused with a code', async () => {
      const { connectionId } = await credentials.createConnection({});
      const refused = { statusCode: 409, code: 'wrong_state' };
      await assert.rejects(office.offer({ connectionId }), refused);
    });
  });
}
