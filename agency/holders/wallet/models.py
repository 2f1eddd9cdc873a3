"""The personal link of a hosted wallet, and what is bound to it: tries, sessions, codes."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import models
from django.urls import reverse
from django.utils import timezone

from tenants import vault
from tenants.models import Record, Tenant
from wallets.models import Wallet

# Until a PIN is chosen, the link alone opens the wallet.
UNOPENED_FOR = timedelta(days=7)
# The same of a wallet that a visitor made, who chooses the PIN at once.
UNOPENED_BY_VISITOR_FOR = timedelta(days=1)


class PersonalLink(Record):
    """The link by which a holder without an app opens a hosted wallet.

    Whoever opens it first chooses the PIN; from then on it takes both. Without a PIN
    it ends UNOPENED_FOR after it was made; a visitor's ends sooner, and its wallet is
    removed then (visitors.remove_unopened). A wallet has one link: a new one replaces
    it, with its PIN and sessions.
    """

    # Of a link that was just made: shown once, and not stored.
    token = ""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    wallet = models.OneToOneField(
        Wallet, on_delete=models.CASCADE, related_name="personal_link"
    )
    # The SHA-256 of the token, by which it is found.
    digest = models.BinaryField(unique=True)
    # Hashed by one of PASSWORD_HASHERS; empty until the holder has chosen one.
    pin = models.CharField(max_length=128, blank=True)
    pin_chosen_at = models.DateTimeField(null=True)
    # Until when the holder knows which cards have ended; null: nothing yet.
    told_at = models.DateTimeField(null=True)
    # Whether a stranger made the wallet by the page of a link.
    made_by_visitor = models.BooleanField(default=False, db_default=False)
    # The connection of that link if one person may use it: it makes one wallet.
    made_by_connection = models.UUIDField(null=True)
    # Where the holder is told that something waits, sealed; of a new link, nowhere. The
    # other columns are about it: when it was given and confirmed, when a mail is next
    # due and one was last begun, why there can be none.
    mail_address = models.BinaryField(null=True)
    mail_language = models.CharField(
        max_length=2, blank=True, default="", db_default=""
    )
    mail_given_at = models.DateTimeField(null=True)
    mail_confirmed_at = models.DateTimeField(null=True)
    mail_due_at = models.DateTimeField(null=True)
    mail_sent_at = models.DateTimeField(null=True)
    mail_problem = models.CharField(
        max_length=40, blank=True, default="", db_default=""
    )

    class Meta:
        indexes = [
            models.Index(
                fields=["created_at"],
                condition=models.Q(made_by_visitor=True, pin=""),
                name="wallet_link_unopened",
            ),
            models.Index(
                fields=["made_by_connection"],
                condition=models.Q(made_by_connection__isnull=False),
                name="wallet_link_made_by",
            ),
            models.Index(
                fields=["mail_due_at"],
                condition=models.Q(mail_due_at__isnull=False),
                name="wallet_link_mail_due",
            ),
        ]

    def __str__(self) -> str:
        return f"link of {self.wallet_id}"

    @property
    def is_stored(self) -> bool:
        return not self._state.adding

    @property
    def url(self) -> str:
        """The address with the token, which only a new or a found link has."""
        return settings.PUBLIC_URL + reverse("web_wallet:open", args=[self.token])

    def sealed_address(self, address: str) -> bytes | None:
        return vault.sealed_value(self, "mail_address", address)

    def unsealed_address(self) -> str:
        """The mail address of the holder, or ""."""
        return vault.unseal(self, "mail_address") or ""

    @property
    def expires_at(self) -> datetime | None:
        """When it ends if nobody chooses a PIN before; None once somebody has."""
        if self.pin:
            return None
        period = UNOPENED_BY_VISITOR_FOR if self.made_by_visitor else UNOPENED_FOR
        return self.created_at + period

    @property
    def is_expired(self) -> bool:
        """Whether nobody has chosen a PIN in time."""
        return self.expires_at is not None and self.expires_at <= timezone.now()


class PinTry(Record):
    """A PIN that was tried. Deleted if it was right, so what stays were wrong ones."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    link = models.ForeignKey(PersonalLink, on_delete=models.CASCADE)
    # The keyed digest of the client's address.
    address = models.BinaryField()
    # The browser that gave the right PIN before (known_browsers.py). None: another one.
    browser = models.UUIDField(null=True)
    # Whether the right PIN came after it from this address: then it counts for the
    # link as a whole only.
    is_forgiven = models.BooleanField(default=False, db_default=False)

    class Meta:
        verbose_name_plural = "PIN tries"
        indexes = [
            models.Index(fields=["address", "created_at"]),
            models.Index(fields=["created_at"]),
        ]

    def __str__(self) -> str:
        return f"try of the {self.link}"


class WalletSession(Record):
    """A browser in which the link was opened and the PIN given."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    link = models.ForeignKey(
        PersonalLink, on_delete=models.CASCADE, related_name="sessions"
    )
    # The SHA-256 of the cookie.
    digest = models.BinaryField(unique=True)
    used_at = models.DateTimeField(default=timezone.now, db_index=True)

    def __str__(self) -> str:
        return f"session of the {self.link}"


class ShownCard(Record):
    """A code that a holder shows, so that a verifier who scans it may ask this wallet.

    It is taken once, within shown_cards.LIFETIME. Then it leads to the request.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, db_constraint=False)
    link = models.ForeignKey(
        PersonalLink,
        on_delete=models.CASCADE,
        db_constraint=False,
        related_name="shown_cards",
    )
    # The SHA-256 of the token, by which it is found.
    digest = models.BinaryField(unique=True)
    # The token of the link with the request; empty until somebody has taken the code.
    request_token = models.CharField(max_length=32, default="", db_default="")
    taken_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["created_at"])]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(taken_at=None, request_token="")
                | (models.Q(taken_at__isnull=False) & ~models.Q(request_token="")),
                name="taken_card_has_request",
            )
        ]

    def __str__(self) -> str:
        return f"code of the {self.link}"


class WalletPasskey(Record):
    """A passkey that opens the wallet in place of the PIN. It ends with the link."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, db_constraint=False)
    link = models.ForeignKey(
        PersonalLink,
        on_delete=models.CASCADE,
        db_constraint=False,
        related_name="passkeys",
    )
    # The attested credential data of WebAuthn: id and public key.
    credential = models.BinaryField()
    # How often the device says that it has signed; 0 of one that does not count.
    sign_count = models.BigIntegerField(default=0)
    # When the last challenge was made that it has answered.
    asked_at = models.DateTimeField(null=True)
    used_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["link", "credential"], name="one_passkey_of_link"
            )
        ]

    def __str__(self) -> str:
        return f"passkey of the {self.link}"
