"""What knows nothing of the product, by what it is for.

one call            errors, states, transactions, network_reads, prepared_results,
                    waiting
rows as queues      queued_jobs, notify, dispatcher, retention
calls to others     http, addresses, idle_connections, bounded_json
PostgreSQL          database/, compiled_sql, collation, uuid7_bounds
Redis or Valkey     rate_limits, cache
callers, threads    callers, fair_pool, sibling_processes, processors
operating           logs, metrics, progress, faults, master_keys, version
files and texts     storage, csv_text, days, formats/ (Django's FORMAT_MODULE_PATH)
"""
