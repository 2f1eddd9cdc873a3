"""Messages on their way.

Below the protocols, which send: models, envelopes, outbox, router, refusals, pair_lock,
leases. Above the protocols, whose handlers they call: inbox, delivery, completion,
return_route, posting_queue.
"""
