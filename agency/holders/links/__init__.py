"""The pages that holders see: what is behind a link, and what became of it."""
