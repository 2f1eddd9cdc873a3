"""For operators: health, heartbeats, monitoring, doctor, backups, moving."""
