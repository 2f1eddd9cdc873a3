"""Who signs in with an address. Where none is verified, several accounts may have the same one."""

from allauth.account.auth_backends import AuthenticationBackend
from allauth.account.internal.userkit import filter_users_by_email
from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser


class Backend(AuthenticationBackend):
    def _authenticate_by_email(
        self, email: str, password: str
    ) -> AbstractBaseUser | None:
        """The one whose password it is. Where sign-up makes a second account of an address, that of
        a verified one must not go first: the second could not sign in, which tells of the first."""
        if settings.ACCOUNT_EMAIL_VERIFICATION != "none":
            return super()._authenticate_by_email(email, password)
        users = filter_users_by_email(email, for_login=True)
        found = (user for user in users if self._check_password(user, password))
        return next(found, None)
