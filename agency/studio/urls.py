"""Routes of the studio's pages."""

from collections.abc import Callable

from allauth.account import views as account
from django.urls import URLPattern, path
from django.views.generic import RedirectView

from agency.studio import (
    api_docs,
    ask_again,
    audit_log,
    bulks,
    card_check,
    definitions,
    events,
    imported,
    invitations,
    keys,
    kiosks,
    lists,
    members,
    new_connection,
    new_credential,
    organizations,
    overview,
    policies,
    policy_builder,
    recipients,
    requests,
    revoke_many,
    sandbox,
    search_page,
    settings_page,
    wallet_page,
    webhooks,
)
from agency.studio.accounts import mail_language, sessions
from agency.studio.accounts.mail_required import require_mail
from agency.studio.exchange import actions, chat, connection_actions
from agency.studio.exchange import views as exchange

app_name = "studio"
organization = "studio/organizations/<uuid:tenant_id>"
member = f"{organization}/members/<uuid:member_id>"
invitation = f"{organization}/invitations/<uuid:invitation_id>"
key = f"{organization}/keys/<uuid:key_id>"
webhook = f"{organization}/webhooks/<uuid:webhook_id>"
wallet = f"{organization}/wallets/<uuid:wallet_id>"  # of its lists
definition = f"{organization}/definitions/<uuid:object_id>"
bulk = f"{organization}/credentials/bulk/<uuid:object_id>"


def below(
    base: str, *routes: tuple[str, Callable, str], **extra: str
) -> list[URLPattern]:
    """Routes of the same beginning: each what follows it, the view, and the name."""
    return [path(base + end, view, extra, name=name) for end, view, name in routes]


def exchange_routes(kind: str) -> list[URLPattern]:
    """The routes of the exchange page of one kind of object."""
    page = f"{organization}/{kind}s/<uuid:object_id>"
    routes = below(
        page,
        ("", exchange.show_exchange, kind),
        ("/live", exchange.show_live, f"{kind}_live"),
        (
            "/messages/<uuid:message_id>/resend",
            exchange.resend_message,
            f"{kind}_resend",
        ),
        kind=kind,
    )
    if kind == "connection":  # it has no values, and is deleted instead
        return routes + below(
            page,
            ("/remove", exchange.remove_connection, "remove_connection"),
            ("/accept", new_connection.accept_request, "accept_connection"),
            ("/messages", chat.show_chat, "chat"),
            ("/messages/live", chat.show_live, "chat_live"),
            ("/ping", connection_actions.ping_connection, "ping_connection"),
            ("/rotate", connection_actions.rotate_key, "rotate_connection"),
            ("/end", connection_actions.end_connection, "end_connection"),
        )
    if kind == "credential":
        routes += below(
            page,
            ("/issue", actions.issue_credential, "issue_credential"),
            ("/check", card_check.check_card, "check_card"),
            ("/revoke", actions.revoke_credential, "revoke_credential"),
        )
    if kind == "verification":
        routes += below(page, ("/ask", ask_again.ask_again, "ask_again"))
    return routes + below(
        page,
        ("/accept", actions.accept_for_holder, f"{kind}_accept"),
        ("/reveal", exchange.reveal_values, f"{kind}_reveal"),
        ("/cancel", exchange.cancel_exchange, f"{kind}_cancel"),
        kind=kind,
    )


urlpatterns = [
    *below(
        "accounts/",
        # Before the routes of allauth, whose names they have.
        (
            "password/reset/",
            require_mail(account.password_reset),
            "account_reset_password",
        ),
        ("email/", require_mail(account.email), "account_email"),
        ("language/", mail_language.show_language, "language"),
        ("sessions/", sessions.show_sessions, "sessions"),
        ("sessions/others/end", sessions.end_other_sessions, "end_other_sessions"),
        ("sessions/<int:session_id>/end", sessions.end_one_session, "end_session"),
    ),
    path("", organizations.show_home, name="home"),
    path("studio", RedirectView.as_view(pattern_name="studio:organizations")),
    *below(
        "studio/",
        ("", organizations.show_organizations, "organizations"),
        ("organizations/new", organizations.new_organization, "new_organization"),
        ("invitation", invitations.show_invitation, "invitation"),
    ),
    path(
        "invitations/<str:token>", invitations.open_invitation, name="open_invitation"
    ),
    *below(
        organization,
        ("", organizations.show_organization, "organization"),
        ("/live", overview.show_live, "organization_live"),
        ("/delete", organizations.delete_organization, "delete_organization"),
        ("/deletion", organizations.show_deletion, "deletion"),
        ("/imported", imported.show_imported, "imported"),
        ("/settings", settings_page.show_settings, "settings"),
        ("/keys", keys.new_key, "new_key"),
        ("/recipients", recipients.show_recipients, "recipients"),
        ("/search", search_page.show_search, "search"),
        ("/wallets", lists.show_wallets, "wallets"),
        ("/wallets/new", wallet_page.new_wallet, "new_wallet"),
        ("/connections", lists.show_connections, "connections"),
        ("/connections/new", new_connection.new_connection, "new_connection"),
        ("/definitions", definitions.show_definitions, "definitions"),
        ("/definitions/new", definitions.new_definition, "new_definition"),
        ("/credentials", lists.show_credentials, "credentials"),
        ("/credentials/new", new_credential.new_credential, "new_credential"),
        # A file of up to MAX_BULK_BYTES is posted there (agency/server/middleware.py).
        ("/credentials/bulk", bulks.show_bulks, "bulks"),
        ("/verifications", lists.show_verifications, "verifications"),
        ("/verifications/new", policies.new_verification, "new_verification"),
        ("/kiosks", kiosks.show_kiosks, "kiosks"),
        ("/kiosks/new", kiosks.new_kiosk, "new_kiosk"),
        ("/kiosks/<uuid:kiosk_id>/revoke", kiosks.remove_kiosk, "revoke_kiosk"),
        ("/sandbox", sandbox.show_sandbox, "sandbox"),
        ("/sandbox/samples", sandbox.set_up_samples, "set_up_samples"),
        ("/sandbox/holders/new", sandbox.new_holder, "new_simulated_holder"),
        (
            "/sandbox/holders/<uuid:holder_id>",
            sandbox.edit_holder,
            "simulated_holder",
        ),
        ("/policies", policies.show_policies, "policies"),
        ("/policies/new", policy_builder.new_policy, "new_policy"),
        ("/policies/<uuid:object_id>", policies.show_policy, "policy"),
        ("/docs", api_docs.show_api_docs, "api_docs"),
        ("/docs/ids.json", api_docs.show_own_ids, "api_docs_ids"),
        ("/requests", requests.show_requests, "requests"),
        ("/events", events.show_events, "events"),
        ("/events/<uuid:event_id>", events.show_event, "event"),
        ("/members", members.show_members, "members"),
        ("/members/invite", members.invite_member, "invite"),
        ("/second-factor", members.change_requirement, "change_requirement"),
        ("/leave", members.leave_organization, "leave"),
        ("/log", audit_log.show_log, "log"),
        ("/log.csv", audit_log.download_log, "log_csv"),
        ("/webhooks", webhooks.show_webhooks, "webhooks"),
        ("/webhooks/new", webhooks.new_webhook, "new_webhook"),
    ),
    *below(
        key,
        ("/rotate", keys.rotate_key, "rotate_key"),
        ("/revoke", keys.revoke_key, "revoke_key"),
    ),
    *below(
        f"{organization}/wallets/<uuid:object_id>",
        ("", wallet_page.show_wallet, "wallet"),
        ("/connect", wallet_page.connect_wallet, "connect_wallet"),
        ("/issue", wallet_page.issue_to_wallet, "issue_to_wallet"),
        ("/remove", wallet_page.remove_wallet, "remove_wallet"),
        ("/link", wallet_page.create_wallet_link, "create_wallet_link"),
        ("/link/revoke", wallet_page.revoke_wallet_link, "revoke_wallet_link"),
    ),
    *below(
        wallet,
        ("/connections", lists.show_connections, "wallet_connections"),
        ("/credentials", lists.show_credentials, "wallet_credentials"),
        ("/verifications", lists.show_verifications, "wallet_verifications"),
    ),
    *below(
        definition,
        ("", definitions.show_definition, "definition"),
        ("/revoke", revoke_many.revoke_many, "definition_revocation"),
        ("/template.csv", bulks.download_template, "bulk_template"),
    ),
    path(
        f"{organization}/publications/<uuid:publication_id>/retry",
        definitions.retry_publication,
        name="retry_publication",
    ),
    *below(
        bulk,
        ("", bulks.show_bulk, "bulk"),
        ("/live", bulks.show_live, "bulk_live"),
        ("/remove", bulks.remove_bulk, "remove_bulk"),
        ("/result.csv", bulks.download_result, "bulk_result"),
    ),
    *(
        path(f"{bulk}/{one}", bulks.change_bulk, {"change": one}, name=f"{one}_bulk")
        for one in bulks.CHANGES
    ),
    *below(
        member,
        ("/role", members.change_role, "change_role"),
        ("/remove", members.remove_member, "remove_member"),
    ),
    *below(
        invitation,
        ("/resend", members.resend_invitation, "resend_invitation"),
        ("/withdraw", members.withdraw_invitation, "withdraw_invitation"),
    ),
    *below(
        webhook,
        ("", webhooks.show_webhook, "webhook"),
        ("/secret", webhooks.rotate_secret, "rotate_secret"),
        ("/enable", webhooks.enable_webhook, "enable_webhook"),
        ("/disable", webhooks.disable_webhook, "disable_webhook"),
        ("/example", webhooks.send_example, "send_example"),
        ("/recover", webhooks.recover_webhook, "recover_webhook"),
        ("/remove", webhooks.remove_webhook, "remove_webhook"),
        ("/deliveries/<uuid:delivery_id>", webhooks.show_delivery, "delivery"),
        (
            "/deliveries/<uuid:delivery_id>/resend",
            webhooks.resend_delivery,
            "resend_delivery",
        ),
    ),
    *exchange_routes("connection"),
    *exchange_routes("credential"),
    *exchange_routes("verification"),
]
