// The provider side of the clients that have one.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { DOT, Office } from './office.mjs';

for (const version of ['3476', '5018']) {
  describe(`provider ${version}`, () => {
    const { provider } = new Office(version);
    const tenantsOf = (keys) => new Office(version, keys).credentials.listTenants();

    test('an organization is made, opened with its keys, changed and deleted', async () => {
      const wanted = { name: 'Branch', networkId: 'local', endorserType: 'Shared' };
      const { tenantId, extendedInformation } = await provider.createTenant(wanted);
      assert.equal(extendedInformation.transactionEndorsement, 'Shared');
      assert.ok((await provider.listTenants()).some((one) => one.tenantId === tenantId));
      const keys = await provider.getTenantKeys(tenantId);
      assert.equal((await tenantsOf(keys))[0].tenantId, tenantId);
      const changed = await provider.changeTenantKeys(tenantId);
      assert.notEqual(changed.accessToken, keys.accessToken);
      assert.equal((await tenantsOf(changed))[0].tenantId, tenantId);
      await provider.updateTenant(tenantId, { name: 'Renamed' });
      assert.equal((await provider.getTenant(tenantId)).name, 'Renamed');
      await provider.deleteTenant(tenantId);
      await assert.rejects(tenantsOf(changed), { statusCode: 401, code: 'unauthorized' });
    });

    test('a picture is published', async () => {
      const { publicUri } = await provider.addAsset(DOT, { filename: 'dot.png' });
      assert.equal((await fetch(publicUri)).headers.get('content-type'), 'image/png');
    });
  });
}

describe('provider 3476 alone', () => {
  const { provider } = new Office('3476');

  test('all organizations that it made are deleted at once', async () => {
    await provider.createTenant({ name: 'Branch' });
    await provider.deleteAllTenants();
    assert.equal((await provider.listTenants()).length, 0);
  });
});

describe('provider 5018 alone', () => {
  const { provider } = new Office('5018');

  test('networks, regions and usage are read', async () => {
    const made = await provider.createTenant({ name: 'Branch', region: 'UnitedStates' });
    assert.equal(made.region, 'UnitedStates');
    assert.equal((await provider.listNetworks())[0].networkId, 'local');
    assert.equal((await provider.getRegions()).UnitedStates, 'United States');
    assert.ok((await provider.getCloudWalletCount()).total >= 0);
    const current = await provider.getCurrentUsage();
    assert.ok(current.periodStart < current.periodEnd);
    assert.ok((await provider.searchUsage()).length > 0);
    await provider.health();
  });
});
