"""The app of allauth's list of sessions, with our receivers instead of its own."""

from allauth.usersessions.apps import UserSessionsConfig


class SessionsConfig(UserSessionsConfig):
    """allauth's receivers read each session of a person at each sign-in.

    They also note only sign-ins by allauth's own pages. See sessions.py.
    """

    def ready(self) -> None:
        pass
