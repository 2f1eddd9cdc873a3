"""Django's database backend for PostgreSQL, with a pool that detects outages."""
