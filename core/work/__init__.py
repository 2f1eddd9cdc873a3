"""How work is done: one call or job, rows as queues, threads and their shares.

one call            transactions, network_reads, waiting
rows as queues      leases, loop, shares, notify, retention
rooms above         hooks
threads             fair_pool, sibling_processes, processors
commands            progress
"""
