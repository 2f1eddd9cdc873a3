"""The command line of developers: a client of an agency's API, without Django.

It is a package of its own, `agency-cli`, and imports nothing of the server.
"""

__version__ = "0.2.0"
COMMANDS = ("listen", "trigger", "apply")  # a module each
