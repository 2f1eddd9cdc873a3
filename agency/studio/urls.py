"""Routes of the studio's pages."""

from collections.abc import Callable

from allauth.account import views as account
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path
from django.views.generic import RedirectView

from agency.studio import (
    api_docs,
    ask_again,
    audit_log,
    bulk_mails,
    bulks,
    card_check,
    card_design,
    card_scans,
    chosen,
    definitions,
    events,
    imported,
    invitations,
    keys,
    kiosks,
    members,
    new_connection,
    new_credential,
    organizations,
    overview,
    person,
    policies,
    policy_builder,
    recipients,
    requests,
    revoke_many,
    sandbox,
    search_page,
    settings_page,
    trust,
    wallet_page,
    webhooks,
    webvh_did,
)
from agency.studio.accounts import mail_language, sessions
from agency.studio.accounts.mail_required import require_mail
from agency.studio.exchange import actions, chat, connection_actions
from agency.studio.exchange import views as exchange
from agency.studio.lists import (
    CONNECTIONS,
    CREDENTIALS,
    VERIFICATIONS,
    WALLETS,
    list_page,
)

app_name = "studio"
organization = "studio/organizations/<uuid:tenant_id>"
RESET = "account_reset_password"  # a name of allauth
Route = tuple[str, Callable[..., HttpResponseBase], str]


def routes(base: str, *rows: Route, **extra: str) -> list[URLPattern]:
    """Routes of the same beginning: each what follows it, the view, and the name.

    extra: arguments of all these views.
    """
    return [path(base + end, view, extra, name=name) for end, view, name in rows]


def exchange_routes(kind: str, *own: Route) -> list[URLPattern]:
    """The routes of the exchange page of one kind of object. own: of this kind alone."""
    page = f"{organization}/{kind}s/<uuid:object_id>"
    message = "/messages/<uuid:message_id>"
    of_all = routes(
        page,
        ("", exchange.show_exchange, kind),
        ("/live", exchange.show_live, f"{kind}_live"),
        ("/reveal", exchange.reveal_values, f"{kind}_reveal"),
        (f"{message}/resend", exchange.resend_message, f"{kind}_resend"),
        kind=kind,
    )
    return of_all + routes(page, *own)


def accept_routes(kind: str) -> list[URLPattern]:
    """The routes of what may be accepted or cancelled."""
    return routes(
        f"{organization}/{kind}s/<uuid:object_id>",
        ("/accept", actions.accept_for_holder, f"{kind}_accept"),
        ("/cancel", exchange.cancel_exchange, f"{kind}_cancel"),
        kind=kind,
    )


urlpatterns = [
    *routes(
        "accounts/",
        # Before the routes of allauth, whose names they have.
        ("password/reset/", require_mail(account.password_reset), RESET),
        ("email/", require_mail(account.email), "account_email"),
        ("language/", mail_language.show_language, "language"),
        ("sessions/", sessions.show_sessions, "sessions"),
        ("sessions/others/end", sessions.end_other_sessions, "end_other_sessions"),
        ("sessions/<int:session_id>/end", sessions.end_one_session, "end_session"),
    ),
    *routes(
        "",
        ("", organizations.show_home, "home"),
        ("studio/", organizations.show_organizations, "organizations"),
        (
            "studio/organizations/new",
            organizations.new_organization,
            "new_organization",
        ),
        ("studio/invitation", invitations.show_invitation, "invitation"),
        ("invitations/<str:token>", invitations.open_invitation, "open_invitation"),
    ),
    path("studio", RedirectView.as_view(pattern_name="studio:organizations")),
    *routes(
        organization,
        ("", organizations.show_organization, "organization"),
        ("/live", overview.show_live, "organization_live"),
        ("/delete", organizations.delete_organization, "delete_organization"),
        ("/deletion", organizations.show_deletion, "deletion"),
        ("/imported", imported.show_imported, "imported"),
        ("/settings", settings_page.show_settings, "settings"),
        ("/settings/colors.css", settings_page.show_phone_colors, "settings_colors"),
        ("/did", webvh_did.show_did, "webvh_did"),
        ("/did/make", webvh_did.make_did, "make_webvh"),
        ("/did/rotate", webvh_did.rotate_keys, "rotate_webvh"),
        ("/did/end", webvh_did.end_did, "end_webvh"),
        ("/trust", trust.show_trust, "trust"),
        ("/trust/anchors/new", trust.new_anchor, "new_trust_anchor"),
        (
            "/trust/anchors/<uuid:anchor_id>/delete",
            trust.remove_anchor,
            "remove_trust_anchor",
        ),
        ("/trust/request", trust.download_request, "certificate_request"),
        ("/trust/certificates", trust.upload_certificates, "upload_certificates"),
        ("/trust/own", trust.use_own, "use_own_certificates"),
        ("/recipients", recipients.show_recipients, "recipients"),
        ("/search", search_page.show_search, "search"),
        ("/wallets", list_page(WALLETS), "wallets"),
        ("/wallets/new", wallet_page.new_wallet, "new_wallet"),
        ("/connections", list_page(CONNECTIONS), "connections"),
        (
            "/connections/chosen",
            chosen.chosen_page(CONNECTIONS),
            "connections_chosen",
        ),
        ("/connections/new", new_connection.new_connection, "new_connection"),
        ("/definitions", definitions.show_definitions, "definitions"),
        ("/definitions/new", definitions.new_definition, "new_definition"),
        ("/credentials", list_page(CREDENTIALS), "credentials"),
        (
            "/credentials/chosen",
            chosen.chosen_page(CREDENTIALS),
            "credentials_chosen",
        ),
        ("/credentials/new", new_credential.new_credential, "new_credential"),
        # A file of up to MAX_BULK_BYTES is posted there (agency/server/middleware.py).
        ("/credentials/bulk", bulks.show_bulks, "bulks"),
        ("/verifications", list_page(VERIFICATIONS), "verifications"),
        (
            "/verifications/chosen",
            chosen.chosen_page(VERIFICATIONS),
            "verifications_chosen",
        ),
        ("/verifications/new", policies.new_verification, "new_verification"),
        ("/kiosks", kiosks.show_kiosks, "kiosks"),
        ("/kiosks/new", kiosks.new_kiosk, "new_kiosk"),
        ("/kiosks/<uuid:kiosk_id>/revoke", kiosks.remove_kiosk, "revoke_kiosk"),
        ("/sandbox", sandbox.show_sandbox, "sandbox"),
        ("/sandbox/samples", sandbox.set_up_samples, "set_up_samples"),
        ("/sandbox/holders/new", sandbox.new_holder, "new_simulated_holder"),
        ("/sandbox/holders/<uuid:holder_id>", sandbox.edit_holder, "simulated_holder"),
        ("/policies", policies.show_policies, "policies"),
        ("/policies/new", policy_builder.new_policy, "new_policy"),
        ("/policies/<uuid:object_id>", policies.show_policy, "policy"),
        ("/policies/<uuid:object_id>/scan", card_scans.scan_card, "scan_card"),
        ("/docs", api_docs.show_api_docs, "api_docs"),
        ("/docs/ids.json", api_docs.show_own_ids, "api_docs_ids"),
        ("/requests", requests.show_requests, "requests"),
        ("/events", events.show_events, "events"),
        ("/events/<uuid:event_id>", events.show_event, "event"),
        ("/members", members.show_members, "members"),
        ("/members/invite", members.invite_member, "invite"),
        ("/members/<uuid:member_id>/role", members.change_role, "change_role"),
        ("/members/<uuid:member_id>/remove", members.remove_member, "remove_member"),
        ("/second-factor", members.change_requirement, "change_requirement"),
        ("/leave", members.leave_organization, "leave"),
        ("/log", audit_log.show_log, "log"),
        ("/log.csv", audit_log.download_log, "log_csv"),
        ("/webhooks", webhooks.show_webhooks, "webhooks"),
        ("/webhooks/new", webhooks.new_webhook, "new_webhook"),
        ("/keys", keys.show_keys, "keys"),
        ("/keys/first", keys.make_first_keys, "first_keys"),
        ("/keys/new", keys.new_key, "new_key"),
        ("/keys/<uuid:key_id>/rotate", keys.rotate_key, "rotate_key"),
        ("/keys/<uuid:key_id>/revoke", keys.revoke_key, "revoke_key"),
    ),
    *routes(
        f"{organization}/wallets/<uuid:object_id>",
        ("", wallet_page.show_wallet, "wallet"),
        ("/connect", wallet_page.connect_wallet, "connect_wallet"),
        ("/issue", wallet_page.issue_to_wallet, "issue_to_wallet"),
        ("/remove", wallet_page.remove_wallet, "remove_wallet"),
        ("/link", wallet_page.create_wallet_link, "create_wallet_link"),
        ("/link/revoke", wallet_page.revoke_wallet_link, "revoke_wallet_link"),
    ),
    *routes(
        f"{organization}/wallets/<uuid:wallet_id>",
        ("/connections", list_page(CONNECTIONS), "wallet_connections"),
        ("/credentials", list_page(CREDENTIALS), "wallet_credentials"),
        ("/verifications", list_page(VERIFICATIONS), "wallet_verifications"),
    ),
    *routes(
        f"{organization}/definitions/<uuid:object_id>",
        ("", definitions.show_definition, "definition"),
        ("/revoke", revoke_many.revoke_many, "definition_revocation"),
        ("/design", card_design.design_cards, "definition_design"),
        ("/twin", definitions.make_twin, "make_twin"),
        ("/template.csv", bulks.download_template, "bulk_template"),
    ),
    *routes(
        f"{organization}/publications/<uuid:publication_id>",
        ("/retry", definitions.retry_publication, "retry_publication"),
    ),
    *routes(
        f"{organization}/credentials/bulk/<uuid:object_id>",
        ("", bulks.show_bulk, "bulk"),
        ("/live", bulks.show_live, "bulk_live"),
        ("/remove", bulks.remove_bulk, "remove_bulk"),
        ("/result.csv", bulks.download_result, "bulk_result"),
        ("/result.xlsx", bulks.download_workbook, "bulk_workbook"),
        ("/print", bulks.show_printed, "bulk_print"),
        *((f"/{one}", bulks.change_with(one), f"{one}_bulk") for one in bulks.CHANGES),
        ("/mail", bulk_mails.mail_bulk, "mail_bulk"),
        ("/remind", bulk_mails.remind_bulk, "remind_bulk"),
        *(
            (f"/mails/{one}", bulk_mails.change_with(one), f"{one}_mails")
            for one in bulk_mails.CHANGES
        ),
    ),
    *routes(
        f"{organization}/invitations/<uuid:invitation_id>",
        ("/resend", members.resend_invitation, "resend_invitation"),
        ("/withdraw", members.withdraw_invitation, "withdraw_invitation"),
    ),
    *routes(
        f"{organization}/webhooks/<uuid:webhook_id>",
        ("", webhooks.show_webhook, "webhook"),
        ("/secret", webhooks.rotate_secret, "rotate_secret"),
        ("/enable", webhooks.enable_webhook, "enable_webhook"),
        ("/disable", webhooks.disable_webhook, "disable_webhook"),
        ("/example", webhooks.send_example, "send_example"),
        ("/recover", webhooks.recover_webhook, "recover_webhook"),
        ("/remove", webhooks.remove_webhook, "remove_webhook"),
    ),
    *routes(
        f"{organization}/webhooks/<uuid:webhook_id>/deliveries/<uuid:delivery_id>",
        ("", webhooks.show_delivery, "delivery"),
        ("/resend", webhooks.resend_delivery, "resend_delivery"),
    ),
    *exchange_routes(
        "connection",
        ("/remove", exchange.remove_connection, "remove_connection"),
        ("/accept", new_connection.accept_request, "accept_connection"),
        ("/messages", chat.show_chat, "chat"),
        ("/messages/live", chat.show_live, "chat_live"),
        ("/ping", connection_actions.ping_connection, "ping_connection"),
        ("/rotate", connection_actions.rotate_key, "rotate_connection"),
        ("/end", connection_actions.end_connection, "end_connection"),
    ),
    *exchange_routes(
        "credential",
        ("/issue", actions.issue_credential, "issue_credential"),
        ("/check", card_check.check_card, "check_card"),
        ("/revoke", actions.revoke_credential, "revoke_credential"),
        ("/sheet", exchange.show_sheet, "credential_sheet"),
        ("/mail", bulk_mails.mail_credential, "mail_credential"),
    ),
    *routes(
        f"{organization}/connections/<uuid:object_id>",
        ("/person", person.show_person, "connection_person"),
        kind="connection",
    ),
    *routes(
        f"{organization}/credentials/<uuid:object_id>",
        ("/person", person.show_person, "credential_person"),
        kind="credential",
    ),
    *accept_routes("credential"),
    *exchange_routes("verification", ("/ask", ask_again.ask_again, "ask_again")),
    *accept_routes("verification"),
]
