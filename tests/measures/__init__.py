"""Figures of how the source reads: `python -m tests.measures [walks]`."""
