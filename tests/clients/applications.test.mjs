// What the applications of the original service do with its clients.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { Office } from './office.mjs';

const ANYTHING = ['*/*', 'application/json, text/plain, */*']; // as fetch() and axios ask

describe('the provider application', () => {
  const { provider } = new Office('5018');

  test('makes an organization on a network of its menu', async () => {
    const { network } = await provider.createTenant({ name: 'Branch', networkId: 'sovrin-staging' });
    assert.equal(network.networkId, 'local');
  });
});

for (const version of ['3102', '3476', '5018']) {
  describe(`the wallet application with ${version}`, () => {
    const { credentials, wallet } = new Office(version);

    for (const Accept of ANYTHING) {
      test(`follows an invitation to its d_m, taking ${Accept}`, async () => {
        const { walletId } = await wallet.createWallet({ ownerName: 'Rex' });
        const { invitationUrl } = await credentials.createConnection({ name: 'Registry office' });
        const moved = await fetch(invitationUrl, { headers: { Accept }, redirect: 'manual' });
        const carried = new URL(moved.headers.get('location')).searchParams;
        assert.equal(carried.get('c_i'), carried.get('d_m'));
        const mine = await wallet.acceptInvitation(walletId, carried.get('d_m'));
        assert.deepEqual([mine.state, mine.name], ['Connected', 'Registry office']);
        assert.ok(mine.invitation && mine.invitationUrl);
      });
    }

    test('calls connections and wallets as it likes', async () => {
      for (const name of [`unique id ${version}`, `+1 555 ${version}`, `dömain ${version}`]) {
        assert.equal((await wallet.createWallet({ walletId: name, ownerName: 'Rex' })).walletId, name);
        const { invitation } = await credentials.createConnection({ connectionId: name });
        await wallet.acceptInvitation(name, invitation);
        assert.equal((await credentials.getConnection(name)).state, 'Connected');
        assert.equal((await wallet.listConnections(name)).length, 1);
      }
    });
  });
}

describe('the issuer application', () => {
  const events = [];
  const { provider } = new Office('5018');
  let office, server;

  before(async () => {
    server = createServer(async (request) => { // it takes the event and never answers
      let text = '';
      for await (const piece of request) text += piece;
      events.push(JSON.parse(text));
    });
    await new Promise((listening) => { server.listen(0, '127.0.0.1', listening); });
    const { tenantId } = await provider.createTenant({ name: 'Issuer' });
    office = new Office('5018', await provider.getTenantKeys(tenantId));
  });

  after(() => {
    server.closeAllConnections();
    server.close();
  });

  test('is told of a connection once', async () => {
    const url = `http://127.0.0.1:${server.address().port}/webhook`;
    const { id } = await office.credentials.createWebhook({ url, type: 'Notification' });
    const { connectionId } = await office.meet();
    const calls = await delivered(office, id, 'new_connection');
    assert.deepEqual(calls.map((one) => [one.objectId, one.status, one.calls]), [[connectionId, 'Unconfirmed', 1]]);
    const told = events.filter((one) => one.message_type === 'new_connection');
    assert.deepEqual(told.map((one) => one.object_id), [connectionId]);
  });
});

/** The calls of a webhook about events of a type, once none of them waits any more. */
async function delivered({ keys }, webhookId, messageType) {
  const path = `${process.env.AGENCY_URL}/credentials/v1/webhooks/${webhookId}/deliveries?messageType=${messageType}`;
  const headers = { Authorization: `bearer ${keys.accessToken}` };
  for (let second = 0; second < 60; second += 1) {
    const calls = await (await fetch(path, { headers })).json();
    if (calls.length && calls.every((one) => one.status !== 'Pending')) return calls;
    await sleep(1000);
  }
  throw new Error('a call still waits to be repeated');
}
