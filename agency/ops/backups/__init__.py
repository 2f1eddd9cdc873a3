"""Backups: the database and the files of one moment, in one folder.

    database.sql.gz   a dump of one snapshot, as SQL
    storage/…         tails files and pictures
    manifest.json     what is in the backup, and what a restore needs

A folder with a manifest is complete: it is written under another name and renamed at
the end. The master key is not in it, only its id. The commands backup (writing.py),
restore (restoring.py) and verify_backup (verifying.py) are in
agency/management/commands/; operators read docs/operations/.
"""
