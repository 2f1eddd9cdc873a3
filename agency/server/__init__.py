"""The web and stream processes: ASGI applications, middleware, static files."""
