"""What knows nothing of the product, and all else uses. Each folder is a layer.

text/        JSON that others sent, CSV, days, formats/ (Django's FORMAT_MODULE_PATH)
telemetry/   logs, metrics
database/    PostgreSQL: the backend, statements that are built once, migrations
work/        one call (transactions, network_reads, waiting), rows as queues (leases,
             loop, shares, notify, retention) and threads (fair_pool)
valkey/      what all processes share in Redis or Valkey: rate_limits, cache
net/         the HTTP client for foreign addresses, and who calls
api/         the base of all REST views. It knows organizations and keys, and so is a
             layer above tenants/

Beside them call (what one call shares), errors, states (`move()`), storage,
master_keys, faults and version.
"""
