"""Calls to addresses that others give, and the address of who calls."""
