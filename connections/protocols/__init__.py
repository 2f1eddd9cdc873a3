"""One file for each RFC, and what the two handshakes share.

handshakes             invite, accept and connect, by connections/1.0 or DID exchange
connection_requests    requests that are refused
held_requests          requests that wait for a person
public_dids            connect without an invitation
connectionless         exchanges by link
"""
