"""What states, reasons, messages and links are in words, for each who reads of them.

states.py has a table for each kind of object with a column for each audience: staff in
the studio and the admin, holders, and who looks at a link or at a kiosk. What an
attribute, its value and a condition are in words is in verifications/wording.py.
"""
