"""The menu at the left of each page, and the organizations to switch between."""

from dataclasses import dataclass
from uuid import UUID

from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import SimpleLazyObject, cached_property

from agency.studio.checklist import NextStep, next_step_of
from agency.studio.pages import list_memberships, may_create_organizations
from tenants.models import Membership, Permission, Tenant

MAX_SWITCHER = 20  # organizations in the menu; the page of all has the rest


@dataclass(frozen=True)
class Entry:
    """A page of an organization in the menu.

    name: of its URL in the studio, which takes the organization's id. within: the
    names of the pages that belong to this one. permission: what it takes to open it.
    is_for_tests: whether only test organizations have it.
    """

    label: str
    name: str
    within: tuple[str, ...] = ()
    permission: Permission = Permission.READ
    is_for_tests: bool = False


MEMBER_PAGES = (
    "invite", "resend_invitation", "withdraw_invitation", "change_role",
    "remove_member", "leave", "change_requirement", "imported",
)  # fmt: skip
WALLET_PAGES = (
    "new_wallet", "remove_wallet", "connect_wallet", "create_wallet_link",
    "wallet", "wallet_connections", "wallet_credentials", "wallet_verifications",
)  # fmt: skip
# Above these pages and their live parts stands the next of the first steps.
STORY_PAGES = frozenset(
    name
    for kind in ("definition", "credential", "verification")
    for name in (f"{kind}s", kind, f"{kind}_live", f"new_{kind}")
) | {"connections", "new_connection", "policies", "policy", "new_policy"}
# Groups in their order. A new page of an organization is one line here, or one name in
# the `within` of its list.
MENU: list[tuple[str, list[Entry]]] = [
    (
        "",
        [
            Entry("Overview", "organization"),
        ],
    ),
    (
        "Exchanges",
        [
            Entry(
                "Connections",
                "connections",
                (
                    "connection",
                    "connection_person",
                    "connections_chosen",
                    "new_connection",
                    "remove_connection",
                    "end_connection",
                    "chat",
                ),
            ),
            Entry(
                "Definitions",
                "definitions",
                (
                    "definition",
                    "definition_design",
                    "definition_revocation",
                    "new_definition",
                    "retry_publication",
                ),
            ),
            Entry(
                "Credentials",
                "credentials",
                (
                    "credential",
                    "credential_person",
                    "credentials_chosen",
                    "new_credential",
                    "revoke_credential",
                    "mail_credential",
                    "bulks",
                    "bulk",
                    "remove_bulk",
                    "mail_bulk",
                    "bulk_print",
                ),
            ),
            Entry("Policies", "policies", ("policy", "new_policy", "scan_card")),
            Entry(
                "Verifications",
                "verifications",
                ("verification", "verifications_chosen", "new_verification"),
            ),
            Entry("Kiosks", "kiosks", ("new_kiosk", "revoke_kiosk")),
        ],
    ),
    (
        "Holders",
        [
            Entry("Wallets", "wallets", WALLET_PAGES),
            Entry(
                "Sandbox",
                "sandbox",
                ("new_simulated_holder", "simulated_holder"),
                is_for_tests=True,
            ),
        ],
    ),
    (
        "Developers",
        [
            Entry(
                "Keys", "keys", ("first_keys", "new_key", "rotate_key", "revoke_key")
            ),
            Entry("API calls", "requests"),
            Entry("Events", "events", ("event",)),
            Entry(
                "Webhooks",
                "webhooks",
                (
                    "webhook", "new_webhook", "rotate_secret", "enable_webhook",
                    "disable_webhook", "send_example", "recover_webhook",
                    "remove_webhook", "delivery", "resend_delivery",
                ),
            ),
        ],
    ),
    (
        "Organization",
        [
            Entry("Team", "members", MEMBER_PAGES),
            Entry(
                "Settings",
                "settings",
                ("delete_organization",),
                permission=Permission.CONFIGURE,
            ),
            Entry("DID", "webvh_did", ("rotate_webvh", "end_webvh")),
            Entry(
                "Trust",
                "trust",
                ("new_trust_anchor", "remove_trust_anchor", "use_own_certificates"),
            ),
            Entry("Log", "log", permission=Permission.LOG),
        ],
    ),
]  # fmt: skip


class Menu:
    """What the base template shows of a page and its organization."""

    def __init__(
        self,
        request: HttpRequest,
        page: str | None = None,
        tenant_id: UUID | None = None,
    ) -> None:
        """page, tenant_id: if the address of the request does not say them."""
        self.request = request
        match = request.resolver_match
        given = match.kwargs.get("tenant_id") if match else None
        self.page = page or (match.url_name if match else None)
        self.tenant_id = tenant_id or given

    @cached_property
    def memberships(self) -> list[Membership]:
        """The person's organizations by name, with the one of this page."""
        rows = list_memberships(self.request).order_by("tenant__name", "pk")
        shown = list(rows[:MAX_SWITCHER])
        if self.tenant_id and all(row.tenant_id != self.tenant_id for row in shown):
            shown += rows.filter(tenant=self.tenant_id)
        return shown

    @cached_property
    def membership(self) -> Membership | None:
        """Of this page's organization. None on other pages, and for strangers."""
        found = (row for row in self.memberships if row.tenant_id == self.tenant_id)
        return next(found, None)

    @property
    def tenant(self) -> Tenant | None:
        return self.membership.tenant if self.membership else None

    @property
    def is_in_story(self) -> bool:
        return self.tenant is not None and self.page in STORY_PAGES

    @cached_property
    def next_step(self) -> NextStep | None:
        """What the bar above a page of the story leads to."""
        if self.membership is None or not self.is_in_story:
            return None
        return next_step_of(self.membership)

    @property
    def is_at_next_step(self) -> bool:
        """Whether the next step is done on this page, or waits there for somebody."""
        kind = (self.page or "").removeprefix("new_").removesuffix("_live")
        return self.next_step is not None and kind in self.next_step.kinds

    @property
    def may_create(self) -> bool:
        return may_create_organizations(self.request.user)

    @property
    def others(self) -> list[Membership]:
        return [row for row in self.memberships if row != self.membership]

    @property
    def groups(self) -> list[tuple[str, list[dict[str, str]]]]:
        """The titles of the menu with their links, of what the person may open."""
        found = []
        for title, entries in MENU:
            links = [self.link(entry) for entry in entries if self.may_open(entry)]
            if links:
                found.append((title, links))
        return found

    def may_open(self, entry: Entry) -> bool:
        if self.membership is None or not self.membership.may(entry.permission):
            return False
        return self.membership.tenant.is_test or not entry.is_for_tests

    def link(self, entry: Entry) -> dict[str, str]:
        """Return the label, the address and the `aria-current` of an entry.

        current: "page", "true" for a page within, or "".
        """
        is_within = self.page in entry.within
        current = "page" if self.page == entry.name else "true" if is_within else ""
        url = reverse(f"studio:{entry.name}", args=[self.tenant_id])
        return {"label": entry.label, "url": url, "current": current}


def menu_context(request: HttpRequest) -> dict[str, SimpleLazyObject]:
    """Context processor. Pages that show no menu execute no query for it."""
    return {"menu": SimpleLazyObject(lambda: Menu(request))}
