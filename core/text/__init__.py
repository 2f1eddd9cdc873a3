"""Texts of others and for people: JSON, CSV, days, formats of numbers and dates."""
