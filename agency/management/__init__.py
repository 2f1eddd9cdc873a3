"""The commands of `manage.py` for who operates an installation.

Backups: `backup`, `verify_backup`, `restore`, `begin_epoch`. Keys: `fill_key_pool`,
`rotate_data_keys`, `verify_keys`. Moving an organization: `export_organization`,
`import_organization`. The database: `migrate`, `check_schema`. Also `deliver`, which is
a process of the product, `doctor`, `fill_name_search` and `reset_second_factor`.
"""
