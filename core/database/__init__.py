"""PostgreSQL: Django's backend with a pool that detects outages (base, pool, options,
prepared_statements), what an operator must know of it (refused_writes, sessions,
older_processes), tables by day (partitions), and helpers of migrations (backfill,
indexes).
"""
