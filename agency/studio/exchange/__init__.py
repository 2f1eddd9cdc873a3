"""The page of one object: what became of it, and what can be done about it."""
