#!/usr/bin/env python
"""Django's commands and those of the product: see agency/command_line.py."""

from agency.command_line import main

if __name__ == "__main__":
    main()
