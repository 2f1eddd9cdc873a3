"""The commands of `manage.py`: backups, keys, moving, `deliver` and `doctor`."""
