"""What a transaction sends, and to whom: below the protocols, which send.

outbox       store a message for the peer, in the transaction that sends it
pair_lock    lock a connection, and the peer's if it is hosted here
envelopes    pack and unpack for stored keys
router       which function handles a type of message
models       the tables of messages
"""
