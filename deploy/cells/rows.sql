-- What leads calls to this cell, a line each: 0, or 1 if the organization is frozen here, as it
-- moves or has moved; then the key.
WITH organization AS (
    SELECT id, public_id, (frozen_at IS NOT NULL)::int AS is_frozen
    FROM tenants_tenant WHERE deleted_at IS NULL
), named (tenant_id, key) AS (
    SELECT id, public_id::text FROM organization
    UNION ALL SELECT tenant_id, encode(sha256, 'hex') FROM tenants_apikey
        WHERE revoked_at IS NULL
    UNION ALL SELECT tenant_id, verkey FROM wallets_key WHERE retired_at IS NULL
    UNION ALL SELECT tenant_id, token FROM connections_connection WHERE token <> ''
    UNION ALL SELECT tenant_id, token FROM holderpages_closedlink
    UNION ALL SELECT tenant_id, encode(digest, 'hex') FROM webwallet_personallink
    UNION ALL SELECT tenant_id, encode(sha256, 'hex') FROM verifications_kiosk
    UNION ALL SELECT tenant_id, segment FROM credentials_webvhdid
    UNION ALL SELECT tenant_id, schema_id FROM credentials_schema
    UNION ALL SELECT tenant_id, definition_id FROM credentials_credentialdefinition
    UNION ALL SELECT tenant_id, registry_id FROM credentials_revocationregistry
)
SELECT DISTINCT is_frozen, key FROM named
JOIN organization ON organization.id = tenant_id WHERE key IS NOT NULL;
