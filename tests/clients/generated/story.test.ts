// The story of a client with the types that openapi-typescript makes, a step after the other.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';

import createClient from 'openapi-fetch';

import type { components, paths } from './agency.js';

type Schemas = components['schemas'];

const url = process.env['AGENCY_URL']!;
const keys = JSON.parse(process.env['AGENCY_ORGANIZATIONS']!).typescript as Record<string, string>;
const VALUES = { name: 'Rex', year: '2019' };
const DOT = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
const CHECK: Schemas['VerificationPolicyParameters'] = {
  name: 'Licence check',
  version: '1.0',
  attributes: [{ policyName: 'Name', attributeNames: ['name'] }],
  predicates: [{ policyName: 'Old enough', attributeName: 'year', predicateType: '<=', predicateValue: 2020 }],
};

function clientWith(accessToken: string | undefined) {
  const headers = { Authorization: `bearer ${accessToken}`, 'X-Service-Subscription-Key': keys['subscriptionKey'] };
  return createClient<paths>({ baseUrl: url, headers });
}

const api = clientWith(keys['accessToken']);

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** What a call answers that succeeds. */
async function given<T>(call: Promise<Answer<T>>): Promise<T> {
  const { data, error } = await call;
  assert.ok(data !== undefined, JSON.stringify(error));
  return data;
}

/** A call that succeeds and answers nothing. */
async function done(call: Promise<Answer<unknown>>): Promise<void> {
  const { error, response } = await call;
  assert.equal(response.status, 200, JSON.stringify(error));
}

async function refused(
  call: Promise<{ error?: Schemas['Error']; response: Response }>,
  status: number,
  code: Schemas['ErrorCode'],
): Promise<Schemas['Error']> {
  const { error, response } = await call;
  assert.deepEqual([response.status, error?.code], [status, code]);
  return error!;
}

function only<T>(values: readonly T[]): T {
  assert.equal(values.length, 1);
  return values[0]!;
}

describe('typescript', () => {
  // What earlier steps made, for later ones.
  let walletId: string;
  let connection: Schemas['ConnectionContract'];
  let theirs: Schemas['ConnectionContract'];
  let schemaId: string;
  let definitionId: string;
  let credentialId: string;
  let heldId: string;
  let policyId: string;
  let verificationId: string;
  let webhookId: string;

  async function newestRequest(): Promise<string> {
    const params = { path: { walletId }, query: { limit: 1 } };
    const request = only(await given(api.GET('/custodian/v1/api/{walletId}/verifications', { params })));
    assert.equal(request.state, 'Requested' satisfies Schemas['VerificationState']);
    return request.verificationId;
  }

  /** Ask whether the credential is valid now: the result. */
  async function askNow(): Promise<Schemas['VerificationContract']> {
    const asked = await given(api.POST('/verifications/policy/connections/{connectionId}', {
      params: { path: { connectionId: connection.connectionId } },
      body: { ...CHECK, revocationRequirement: { validNow: true } },
    }));
    const path = { walletId, verificationId: await newestRequest() };
    await done(api.PUT('/custodian/v1/api/{walletId}/verifications/{verificationId}/autoSelect', { params: { path } }));
    const params = { path: { verificationId: asked.verificationId } };
    return given(api.GET('/verifications/{verificationId}', { params }));
  }

  test('the service answers', async () => {
    assert.equal(await given(api.GET('/health', { parseAs: 'text' })), 'Healthy');
  });

  test('an organization reads itself and its network', async () => {
    assert.equal(only(await given(api.GET('/tenants'))).name, 'typescript');
    assert.equal((await given(api.GET('/common/networks')))[0]?.networkId, 'local');
  });

  test('a picture is uploaded', async () => {
    const address = await given(api.POST('/common/upload', {
      body: { uploadedFiles: 'dot.png' },
      bodySerializer() {
        const form = new FormData();
        form.append('uploadedFiles', new Blob([DOT], { type: 'image/png' }), 'dot.png');
        return form;
      },
    }));
    assert.ok(address.startsWith(url) && address.endsWith('.png'));
  });

  test('a wallet is hosted', async () => {
    const wallet = await given(api.POST('/custodian/v1/api/wallets', { body: { ownerName: 'Rex' } }));
    assert.equal(wallet.ownerName, 'Rex');
    walletId = wallet.walletId;
  });

  test('wallets are filtered by name and sorted', async () => {
    await given(api.POST('/custodian/v1/api/wallets', { body: { ownerName: 'Ada' } }));
    const byName = await given(api.GET('/custodian/v1/api/wallets', { params: { query: { sort: 'name' } } }));
    assert.deepEqual(byName.map((one) => one.name), ['Ada', 'Rex']);
    const filtered = api.GET('/custodian/v1/api/wallets', { params: { query: { name: 'Rex' } } });
    assert.equal(only(await given(filtered)).walletId, walletId);
  });

  test('an invitation is made', async () => {
    connection = await given(api.POST('/connections', { body: { name: 'Rex' } }));
    assert.equal(connection.state, 'Invited' satisfies Schemas['ConnectionState']);
    assert.ok(connection.invitationUrl?.startsWith('http'));
  });

  test('a hosted wallet accepts it as JSON', async () => {
    theirs = await given(api.POST('/custodian/v1/api/{walletId}/connections/invitation', {
      params: { path: { walletId } },
      body: { invitation: connection.invitation! },
    }));
    assert.equal(theirs.state, 'Connected' satisfies Schemas['ConnectionState']);
  });

  test('another is accepted as a form', async () => {
    const invited = await given(api.POST('/connections'));
    const accepted = await given(api.POST('/custodian/v1/api/{walletId}/connections/invitation', {
      params: { path: { walletId } },
      body: { invitation: invited.invitationUrl! },
      bodySerializer({ invitation }) {
        const form = new FormData();
        form.append('invitation', invitation);
        return form;
      },
    }));
    assert.equal(accepted.state, 'Connected');
  });

  test('both sides know the key of the other', async () => {
    const params = { path: { connectionId: connection.connectionId } };
    const mine = await given(api.GET('/connections/{connectionId}', { params }));
    assert.equal(mine.state, 'Connected');
    const verkey: string | undefined = mine.endpoint?.verkey;
    assert.equal(typeof verkey, 'string');
    assert.equal(mine.myKey, theirs.theirKey);
  });

  test('a schema is published', async () => {
    const body = { name: 'Dog licence', version: '1.0', attributeNames: ['name', 'year'] };
    schemaId = await given(api.POST('/definitions/schemas', { body }));
    const params = { query: { name: body.name } };
    const schema = only(await given(api.GET('/definitions/schemas', { params })));
    assert.deepEqual([schema.id, schema.attributeNames], [schemaId, body.attributeNames]);
    const other = api.POST('/definitions/schemas', { body: { ...body, attributeNames: ['name'] } });
    const error = await refused(other, 409, 'schema_exists');
    assert.ok(error.documentationUrl?.endsWith('schema_exists'));
  });

  test('a definition with revocation is made', async () => {
    const made = await given(api.POST('/definitions/credentials/{definitionId}', {
      params: { path: { definitionId: schemaId } },
      body: { supportRevocation: true },
    }));
    assert.deepEqual([made.schemaId, made.supportsRevocation], [schemaId, true]);
    definitionId = made.definitionId;
    const params = { query: { schemaId, supportsRevocation: true } };
    const listed = await given(api.GET('/definitions/credentials', { params }));
    assert.equal(only(listed).definitionId, definitionId);
  });

  test('a credential is offered', async () => {
    const { connectionId } = connection;
    const offered = await given(api.POST('/credentials', {
      body: { definitionId, connectionId, credentialValues: VALUES },
    }));
    assert.equal(offered.state, 'Offered' satisfies Schemas['CredentialState']);
    credentialId = offered.credentialId;
  });

  test('the wallet accepts the offer', async () => {
    const list = api.GET('/custodian/v1/api/{walletId}/credentials', { params: { path: { walletId } } });
    heldId = only(await given(list)).credentialId;
    const path = { walletId, credentialId: heldId };
    await done(api.POST('/custodian/v1/api/{walletId}/credentials/{credentialId}', { params: { path } }));
    const credential = await given(api.GET('/credentials/{credentialId}', { params: { path: { credentialId } } }));
    assert.equal(credential.state, 'Requested' satisfies Schemas['CredentialState']);
  });

  test('it is issued with other values', async () => {
    const body = { name: 'Max', year: '2018' };
    const issued = await given(api.PUT('/credentials/{credentialId}', { params: { path: { credentialId } }, body }));
    assert.equal(issued.state, 'Issued' satisfies Schemas['CredentialState']);
    assert.equal(typeof issued.revocationIndex, 'number');
    const params = { path: { walletId, credentialId: heldId } };
    const held = await given(api.GET('/custodian/v1/api/{walletId}/credentials/{credentialId}', { params }));
    assert.deepEqual([held.state, held.values], ['Issued', body]);
    assert.ok(new Date(held.acceptedAtUtc!) >= new Date(issued.createdAtUtc));
  });

  test('what is not offered any more cannot be issued', async () => {
    const again = api.PUT('/credentials/{credentialId}', { params: { path: { credentialId } }, body: VALUES });
    await refused(again, 409, 'wrong_state');
  });

  test('a policy is stored', async () => {
    policyId = (await given(api.POST('/verificationPolicies', { body: CHECK }))).policyId;
    const policy = await given(api.GET('/verificationPolicies/{policyId}', { params: { path: { policyId } } }));
    const { predicateType, predicateValue } = only(policy.predicates!);
    assert.deepEqual([predicateType, predicateValue], ['<=', 2020]);
  });

  test('a proof is requested', async () => {
    const { connectionId } = connection;
    const requested = await given(api.PUT('/verifications/policy/{policyId}/connections/{connectionId}', {
      params: { path: { policyId, connectionId } },
    }));
    assert.deepEqual([requested.state, requested.isValid], ['Requested', undefined]);
    verificationId = requested.verificationId;
  });

  test('the wallet answers with chosen credentials', async () => {
    const params = { path: { walletId, verificationId: await newestRequest() } };
    const { attributes, predicates } = await given(
      api.GET('/custodian/v1/api/{walletId}/verifications/{verificationId}/availableCredentials', { params }),
    );
    const body = [...attributes, ...predicates].map(({ policyName, availableCredentials }) => (
      { policyName, credentialId: only(availableCredentials).credentialId }
    ));
    assert.deepEqual(body.map((one) => one.policyName), ['Name', 'Old enough']);
    assert.ok(body.every((one) => one.credentialId === heldId));
    await done(api.PUT('/custodian/v1/api/{walletId}/verifications/{verificationId}', { params, body }));
  });

  test('the result is valid', async () => {
    const params = { path: { verificationId } };
    const result = await given(api.GET('/verifications/{verificationId}', { params }));
    assert.deepEqual([result.state, result.isValid], ['Accepted', true]);
    const name = result.proof?.['Name'];
    assert.deepEqual([name?.value, name?.revealed, name?.selfAttested], ['Max', true, false]);
    assert.deepEqual(name?.attributes, { name: 'Max' });
    assert.ok(result.checks?.every(({ status }) => status !== 'fail'));
    assert.equal((await given(api.GET('/verifications/{verificationId}/verify', { params }))).valid, true);
  });

  test('the wallet chooses by itself', async () => {
    assert.equal((await askNow()).isValid, true);
  });

  test('the credential is revoked', async () => {
    const params = { path: { credentialId } };
    await done(api.DELETE('/credentials/{credentialId}', { params }));
    assert.equal((await given(api.GET('/credentials/{credentialId}', { params }))).state, 'Revoked');
  });

  test('what was revoked proves nothing', async () => {
    const result = await askNow();
    assert.deepEqual([result.state, result.isValid], ['Accepted', false]);
    assert.ok(result.checks?.some(({ status }) => status === 'fail'));
    assert.ok(result.causes?.[0]?.advice);
  });

  test('verifications are filtered', async () => {
    const list = (query: NonNullable<paths['/verifications']['get']['parameters']['query']>) => (
      given(api.GET('/verifications', { params: { query } }))
    );
    assert.equal(only(await list({ isValid: false })).connectionId, connection.connectionId);
    assert.equal((await list({ state: 'Accepted', isValid: true })).length, 2);
  });

  test('a credential is taken by its link', async () => {
    const offered = await given(api.POST('/credentials', {
      body: { definitionId, automaticIssuance: true, credentialValues: VALUES },
    }));
    assert.equal(offered.connectionId, undefined);
    const taken = await given(api.PUT('/custodian/v1/api/{walletId}/credentials/fromData', {
      params: { path: { walletId } },
      body: { credentialData: offered.offerUrl! },
    }));
    assert.equal(taken.state, 'Issued');
    heldId = taken.credentialId;
  });

  test('a proof is given by a link', async () => {
    const asked = await given(api.PUT('/verifications/policy/{policyId}', { params: { path: { policyId } } }));
    const params = { path: { walletId } };
    const body = { verificationData: asked.verificationRequestData! };
    const { attributes } = await given(
      api.POST('/custodian/v1/api/{walletId}/verifications/fromData/availableCredentials', { params, body }),
    );
    assert.ok(attributes[0]?.availableCredentials.some((one) => one.credentialId === heldId));
    await done(api.PUT('/custodian/v1/api/{walletId}/verifications/fromData/autoSelect', { params, body }));
    const path = { verificationId: asked.verificationId };
    assert.equal((await given(api.GET('/verifications/{verificationId}', { params: { path } }))).isValid, true);
  });

  test('a wallet proposes and declines', async () => {
    const proposed = await given(api.PUT('/custodian/v1/api/{walletId}/credentials/propose/{connectionId}', {
      params: { path: { walletId, connectionId: theirs.connectionId } },
      body: { definitionId, comment: 'Please' },
    }));
    assert.equal(proposed.state, 'Proposed' satisfies Schemas['CredentialState']);
    const query = { state: 'Proposed', role: 'issuer' } as const;
    const seen = only(await given(api.GET('/credentials', { params: { query } })));
    assert.equal(seen.proposal?.comment, 'Please');
    const params = { path: { credentialId: seen.credentialId } };
    const offered = await given(api.PUT('/credentials/{credentialId}/offer', {
      params,
      body: { credentialValues: VALUES },
    }));
    assert.deepEqual([offered.state, offered.values], ['Offered', VALUES]);
    await done(api.POST('/custodian/v1/api/{walletId}/credentials/{credentialId}/decline', {
      params: { path: { walletId, credentialId: proposed.credentialId } },
      body: { reason: 'not_now' },
    }));
    const declined = await given(api.GET('/credentials/{credentialId}', { params }));
    assert.deepEqual([declined.state, declined.problem], ['Rejected', 'not_now']);
  });

  test('messages go both ways', async () => {
    const { connectionId } = connection;
    const sent = await given(api.POST('/messages', { body: { connectionId, text: 'Sit!' } }));
    assert.equal(sent.direction, 'Outgoing' satisfies Schemas['MessageDirection']);
    await done(api.POST('/custodian/v1/api/{walletId}/messages', {
      params: { path: { walletId } },
      body: { connectionId: theirs.connectionId, text: 'Woof' },
    }));
    const params = { path: { connectionId }, query: { sort: 'createdAt' } } as const;
    const listed = await given(api.GET('/messages/connection/{connectionId}', { params }));
    assert.deepEqual(listed.map((one) => one.text), ['Sit!', 'Woof']);
    assert.equal(listed[1]?.direction, 'Incoming' satisfies Schemas['MessageDirection']);
  });

  test('a webhook is registered', async () => {
    const made = await given(api.POST('/webhooks', {
      body: { url: 'http://127.0.0.1:1024/events', messageTypes: ['credential_issued'] },
    }));
    assert.deepEqual(made.messageTypes, ['credential_issued']);
    assert.ok(made.secret);
    webhookId = made.id;
    const changed = api.PATCH('/webhooks/{webhookId}', {
      params: { path: { webhookId } },
      body: { messageTypes: ['verification'] },
    });
    assert.deepEqual((await given(changed)).messageTypes, ['verification']);
  });

  test('an example is delivered', async () => {
    const params = { path: { webhookId } };
    const body = { messageType: 'verification' } as const;
    const { deliveryId } = await given(api.POST('/webhooks/{webhookId}/example', { params, body }));
    const listed = await given(api.GET('/webhooks/{webhookId}/deliveries', { params }));
    assert.equal(only(listed).deliveryId, deliveryId);
    assert.equal((await given(api.PUT('/webhooks/{webhookId}/disable', { params }))).enabled, false);
    await done(api.DELETE('/webhooks/{webhookId}', { params }));
  });

  test('the feed of events goes on after a cursor', async () => {
    const list = (query: { after?: string; limit: number }) => given(api.GET('/events', { params: { query } }));
    const [first, second] = await list({ limit: 2 });
    assert.equal(only(await list({ limit: 1, after: first!.cursor })).eventId, second!.eventId);
  });

  test('a key may do what its scopes say', async () => {
    const made = await given(api.POST('/keys', {
      body: { name: 'Desk', scopes: ['read'], days: 1 },
    }));
    assert.deepEqual(made.scopes, ['read']);
    const desk = clientWith(made.secret);
    assert.equal((await given(desk.GET('/definitions/schemas'))).length, 1);
    await refused(desk.POST('/connections'), 403, 'missing_scope');
    await done(api.DELETE('/keys/{keyId}', { params: { path: { keyId: made.keyId } } }));
    await refused(desk.GET('/definitions/schemas'), 401, 'unauthorized');
    assert.ok((await given(api.GET('/keys'))).every((key) => key.keyId !== made.keyId));
  });

  test('a list is read page by page', async () => {
    for (const name of ['Cleo', 'Bob']) {
      await given(api.POST('/connections', { body: { name } }));
    }
    const invited: (string | undefined)[] = [];
    let cursor: string | undefined;
    do {
      const query = { state: 'Invited', sort: 'name', limit: 1, ...(cursor && { cursor }) } as const;
      const page = await api.GET('/connections', { params: { query } });
      invited.push(...page.data!.map((one) => one.name));
      const next = page.response.headers.get('Link')?.match(/<(.+?)>/)?.[1];
      cursor = next && new URL(next).searchParams.get('cursor')!;
    } while (cursor);
    assert.deepEqual(invited, ['Bob', 'Cleo']);
  });

  test('many credentials are offered, and the result is downloaded', async () => {
    const row = { walletId, credentialValues: VALUES };
    const bulk = await given(api.POST('/credentials/bulk', {
      params: { query: { definitionId } },
      body: [row, row],
    }));
    assert.deepEqual([bulk.rows, bulk.errors], [2, []]);
    const params = { path: { bulkId: bulk.bulkId! } };
    const table = await given(api.GET('/credentials/bulk/{bulkId}/result', { params, parseAs: 'text' }));
    assert.equal(table.trim().split('\n').length, 3);
  });

  test('a request is repeated without a second effect', async () => {
    const params = { header: { 'Idempotency-Key': randomUUID() } };
    const first = await given(api.POST('/connections', { params }));
    const again = await given(api.POST('/connections', { params }));
    assert.equal(again.connectionId, first.connectionId);
  });

  test('a wrong body is refused by field', async () => {
    const body = { name: '', version: 'x', attributeNames: [] };
    const error = await refused(api.POST('/definitions/schemas', { body }), 400, 'invalid_request');
    assert.ok(error.errors?.['name']?.length);
    assert.ok(error.requestId);
  });

  test('what is not there is not found', async () => {
    const params = { path: { credentialId: randomUUID() } };
    await refused(api.GET('/credentials/{credentialId}', { params }), 404, 'not_found');
  });

  test('what was made is deleted', async () => {
    const params = { path: { connectionId: connection.connectionId } };
    await done(api.DELETE('/connections/{connectionId}', { params }));
    await refused(api.GET('/connections/{connectionId}', { params }), 404, 'not_found');
    await done(api.DELETE('/verificationPolicies/{policyId}', { params: { path: { policyId } } }));
    await done(api.DELETE('/definitions/credentials/{definitionId}', { params: { path: { definitionId } } }));
    await done(api.DELETE('/custodian/v1/api/wallets/{walletId}', { params: { path: { walletId } } }));
    assert.equal(only(await given(api.GET('/custodian/v1/api/wallets'))).name, 'Ada');
  });
});
