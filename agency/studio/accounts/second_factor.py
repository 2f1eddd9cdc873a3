"""Second factors: authenticator apps, passkeys and recovery codes of allauth.mfa."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.db import transaction

from tenants import data_key_rotation, vault

PURPOSE = "second factor"


class MFAAdapter(DefaultMFAAdapter):
    """Seals the secrets of apps and recovery codes. Names come from PUBLIC_URL."""

    def encrypt(self, text: str) -> str:
        return vault.seal_text(text, PURPOSE)

    def decrypt(self, encrypted_text: str) -> str:
        return vault.unseal_text(encrypted_text, PURPOSE)

    def _get_site_name(self) -> str:
        return "Agency"

    def get_public_key_credential_rp_entity(self) -> dict[str, str]:
        """The host is that of PUBLIC_URL, whatever the Host header says."""
        return {"id": urlsplit(settings.PUBLIC_URL).hostname or "", "name": "Agency"}


# The member of an authenticator's data that MFAAdapter sealed, by its type.
SEALED_MEMBERS = {
    Authenticator.Type.TOTP: "secret",
    Authenticator.Type.RECOVERY_CODES: "seed",
}


def verify_factors() -> Iterator[tuple[Authenticator, bool]]:
    """Yield each authenticator with a sealed value, and whether it opens."""
    for row in Authenticator.objects.filter(type__in=SEALED_MEMBERS).iterator():
        sealed = row.data[SEALED_MEMBERS[row.type]]
        yield row, vault.unseal_text(sealed, PURPOSE) is not None


@data_key_rotation.reseal_texts.register
def reseal_factors(generation: int) -> tuple[int, int]:
    """Seal them again with the system's data key of this generation.

    Return how many, and how many do not open.
    """
    done = closed = 0
    rows = Authenticator.objects.filter(type__in=SEALED_MEMBERS)
    for pk in list(rows.values_list("pk", flat=True)):
        try:
            done += reseal_factor(pk, generation)
        except vault.UNSEAL_ERRORS:
            closed += 1
    return done, closed


@transaction.atomic
def reseal_factor(pk: int, generation: int) -> bool:
    """Return whether it was sealed with another data key."""
    row = Authenticator.objects.select_for_update().filter(pk=pk).first()
    if not row:
        return False
    member = SEALED_MEMBERS[row.type]
    text = row.data[member]
    if vault.decode_text(text).startswith(vault.header_of(generation)):
        return False
    row.data[member] = vault.reseal_text(text, PURPOSE, generation)
    row.save(update_fields=["data"])
    return True
