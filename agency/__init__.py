"""What stands above the apps: settings, routes, processes, pages and operations.

It uses every app, and no app imports it.
"""
