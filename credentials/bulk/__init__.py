"""Issue many: read a file, check its rows, store them, offer them, tell the results."""
