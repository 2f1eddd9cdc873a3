"""Django's database backend for PostgreSQL, with a pool that notices outages."""
