"""What only a developer's machine needs. Production imports nothing of it."""
