"""What all processes share in Redis or Valkey. Its loss costs no data."""
