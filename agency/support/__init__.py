"""The admin for support staff: its menu, search, customer page and actions."""
