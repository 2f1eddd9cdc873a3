"""Sign-in by email address.

If addresses are not verified, several accounts may share one address.
"""

from allauth.account.auth_backends import AuthenticationBackend
from allauth.account.internal.userkit import filter_users_by_email
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.db.models import Exists, OuterRef

from agency.studio.required_factors import factors_of

FACTOR_OF_USER = Exists(factors_of(OuterRef("pk")))


class Backend(AuthenticationBackend):
    def get_user(self, user_id: int) -> AbstractBaseUser | None:
        """Read with the person, in one query, whether they have a second factor."""
        users = get_user_model().objects.filter(pk=user_id)
        user = users.annotate(has_second_factor=FACTOR_OF_USER).first()
        return user if user and self.user_can_authenticate(user) else None

    def _authenticate_by_email(
        self, email: str, password: str
    ) -> AbstractBaseUser | None:
        """Return the account with this address and this password, or None.

        Without verification, allauth would try only the account with a verified
        address. The others could not sign in, which would disclose that account.
        """
        if settings.ACCOUNT_EMAIL_VERIFICATION != "none":
            return super()._authenticate_by_email(email, password)
        users = filter_users_by_email(email, for_login=True)
        found = (user for user in users if self._check_password(user, password))
        return next(found, None)
