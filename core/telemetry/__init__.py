"""What operators see of a process: its log and its metrics."""
