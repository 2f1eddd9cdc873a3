"""Connections, and the messages that travel on them.

the row             models, removal, retention
links               invitation_links, link_expiry
peers               resolver (from a DID to key and endpoint), hosted_peers
exchanges           exchange: the base of credentials and verifications, both above
messages            didcomm/ (no Django), messaging/ (outbox, inbox, delivery, router)
protocols           protocols/: one file for each RFC, and the handshakes
outside             api/, urls, admin, tasks
"""
