"""Routes of the studio's pages."""

from allauth.account import views as account
from django.urls import URLPattern, path
from django.views.generic import RedirectView

from agency.studio import (
    api_docs,
    audit_log,
    bulks,
    card_check,
    definitions,
    events,
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
wallet = f"{organization}/wallets/<uuid:wallet_id>"
bulk = f"{organization}/credentials/bulk/<uuid:object_id>"
delivery = f"{webhook}/deliveries/<uuid:delivery_id>"


def exchange_routes(kind: str) -> list[URLPattern]:
    """The routes of the exchange page of one kind of object."""
    page = f"{organization}/{kind}s/<uuid:object_id>"
    extra = {"kind": kind}
    routes = [
        path(page, exchange.show_exchange, extra, name=kind),
        path(f"{page}/live", exchange.show_live, extra, name=f"{kind}_live"),
        path(
            f"{page}/messages/<uuid:message_id>/resend",
            exchange.resend_message,
            extra,
            name=f"{kind}_resend",
        ),
    ]
    if kind == "connection":  # it has no values, and is deleted instead
        return [
            *routes,
            path(
                f"{page}/remove", exchange.remove_connection, name="remove_connection"
            ),
            path(
                f"{page}/accept",
                new_connection.accept_request,
                name="accept_connection",
            ),
            path(f"{page}/messages", chat.show_chat, name="chat"),
            path(f"{page}/messages/live", chat.show_live, name="chat_live"),
            path(
                f"{page}/ping",
                connection_actions.ping_connection,
                name="ping_connection",
            ),
            path(
                f"{page}/rotate",
                connection_actions.rotate_key,
                name="rotate_connection",
            ),
            path(
                f"{page}/end",
                connection_actions.end_connection,
                name="end_connection",
            ),
        ]
    if kind == "credential":
        routes += [
            path(f"{page}/issue", actions.issue_credential, name="issue_credential"),
            path(f"{page}/check", card_check.check_card, name="check_card"),
            path(
                f"{page}/revoke", actions.revoke_credential, name="revoke_credential"
            ),
        ]
    return [
        *routes,
        path(
            f"{page}/accept", actions.accept_for_holder, extra, name=f"{kind}_accept"
        ),
        path(f"{page}/reveal", exchange.reveal_values, extra, name=f"{kind}_reveal"),
        path(f"{page}/cancel", exchange.cancel_exchange, extra, name=f"{kind}_cancel"),
    ]


urlpatterns = [
    # Before the routes of allauth, whose names they have.
    path(
        "accounts/password/reset/",
        require_mail(account.password_reset),
        name="account_reset_password",
    ),
    path("accounts/email/", require_mail(account.email), name="account_email"),
    path("accounts/language/", mail_language.show_language, name="language"),
    path("accounts/sessions/", sessions.show_sessions, name="sessions"),
    path(
        "accounts/sessions/others/end",
        sessions.end_other_sessions,
        name="end_other_sessions",
    ),
    path(
        "accounts/sessions/<int:session_id>/end",
        sessions.end_one_session,
        name="end_session",
    ),
    path("", organizations.show_home, name="home"),
    path("studio", RedirectView.as_view(pattern_name="studio:organizations")),
    path("studio/", organizations.show_organizations, name="organizations"),
    path(
        "studio/organizations/new",
        organizations.new_organization,
        name="new_organization",
    ),
    path(organization, organizations.show_organization, name="organization"),
    path(f"{organization}/live", overview.show_live, name="organization_live"),
    path(
        f"{organization}/delete",
        organizations.delete_organization,
        name="delete_organization",
    ),
    path(f"{organization}/settings", settings_page.show_settings, name="settings"),
    path(f"{organization}/keys", keys.new_key, name="new_key"),
    path(f"{key}/rotate", keys.rotate_key, name="rotate_key"),
    path(f"{key}/revoke", keys.revoke_key, name="revoke_key"),
    path(
        f"{organization}/recipients",
        recipients.show_recipients,
        name="recipients",
    ),
    path(f"{organization}/search", search_page.show_search, name="search"),
    path(f"{organization}/wallets", lists.show_wallets, name="wallets"),
    path(f"{organization}/wallets/new", wallet_page.new_wallet, name="new_wallet"),
    path(
        f"{organization}/wallets/<uuid:object_id>/connect",
        wallet_page.connect_wallet,
        name="connect_wallet",
    ),
    path(
        f"{organization}/wallets/<uuid:object_id>/issue",
        wallet_page.issue_to_wallet,
        name="issue_to_wallet",
    ),
    path(
        f"{organization}/wallets/<uuid:object_id>/remove",
        wallet_page.remove_wallet,
        name="remove_wallet",
    ),
    path(
        f"{organization}/wallets/<uuid:object_id>/link",
        wallet_page.create_wallet_link,
        name="create_wallet_link",
    ),
    path(
        f"{organization}/wallets/<uuid:object_id>/link/revoke",
        wallet_page.revoke_wallet_link,
        name="revoke_wallet_link",
    ),
    path(
        f"{organization}/wallets/<uuid:object_id>",
        wallet_page.show_wallet,
        name="wallet",
    ),
    path(f"{wallet}/connections", lists.show_connections, name="wallet_connections"),
    path(f"{wallet}/credentials", lists.show_credentials, name="wallet_credentials"),
    path(
        f"{wallet}/verifications",
        lists.show_verifications,
        name="wallet_verifications",
    ),
    path(f"{organization}/connections", lists.show_connections, name="connections"),
    path(
        f"{organization}/connections/new",
        new_connection.new_connection,
        name="new_connection",
    ),
    path(
        f"{organization}/definitions",
        definitions.show_definitions,
        name="definitions",
    ),
    path(
        f"{organization}/definitions/new",
        definitions.new_definition,
        name="new_definition",
    ),
    path(
        f"{organization}/definitions/<uuid:object_id>",
        definitions.show_definition,
        name="definition",
    ),
    path(
        f"{organization}/definitions/<uuid:object_id>/revoke",
        revoke_many.revoke_many,
        name="definition_revocation",
    ),
    path(
        f"{organization}/publications/<uuid:publication_id>/retry",
        definitions.retry_publication,
        name="retry_publication",
    ),
    path(f"{organization}/credentials", lists.show_credentials, name="credentials"),
    path(
        f"{organization}/credentials/new",
        new_credential.new_credential,
        name="new_credential",
    ),
    # A file of up to MAX_BULK_BYTES is posted there (agency/server/middleware.py).
    path(f"{organization}/credentials/bulk", bulks.show_bulks, name="bulks"),
    path(bulk, bulks.show_bulk, name="bulk"),
    path(f"{bulk}/live", bulks.show_live, name="bulk_live"),
    path(f"{bulk}/remove", bulks.remove_bulk, name="remove_bulk"),
    path(f"{bulk}/result.csv", bulks.download_result, name="bulk_result"),
    *(
        path(
            f"{bulk}/{change}",
            bulks.change_bulk,
            {"change": change},
            name=f"{change}_bulk",
        )
        for change in bulks.CHANGES
    ),
    path(
        f"{organization}/definitions/<uuid:object_id>/template.csv",
        bulks.download_template,
        name="bulk_template",
    ),
    path(
        f"{organization}/verifications",
        lists.show_verifications,
        name="verifications",
    ),
    path(
        f"{organization}/verifications/new",
        policies.new_verification,
        name="new_verification",
    ),
    path(f"{organization}/kiosks", kiosks.show_kiosks, name="kiosks"),
    path(f"{organization}/kiosks/new", kiosks.new_kiosk, name="new_kiosk"),
    path(
        f"{organization}/kiosks/<uuid:kiosk_id>/revoke",
        kiosks.remove_kiosk,
        name="revoke_kiosk",
    ),
    path(f"{organization}/sandbox", sandbox.show_sandbox, name="sandbox"),
    path(
        f"{organization}/sandbox/samples",
        sandbox.set_up_samples,
        name="set_up_samples",
    ),
    path(
        f"{organization}/sandbox/holders/new",
        sandbox.new_holder,
        name="new_simulated_holder",
    ),
    path(
        f"{organization}/sandbox/holders/<uuid:holder_id>",
        sandbox.edit_holder,
        name="simulated_holder",
    ),
    path(f"{organization}/policies", policies.show_policies, name="policies"),
    path(f"{organization}/policies/new", policy_builder.new_policy, name="new_policy"),
    path(
        f"{organization}/policies/<uuid:object_id>",
        policies.show_policy,
        name="policy",
    ),
    path(f"{organization}/docs", api_docs.show_api_docs, name="api_docs"),
    path(f"{organization}/docs/ids.json", api_docs.show_own_ids, name="api_docs_ids"),
    path(f"{organization}/requests", requests.show_requests, name="requests"),
    path(f"{organization}/events", events.show_events, name="events"),
    path(f"{organization}/events/<uuid:event_id>", events.show_event, name="event"),
    path(
        "invitations/<str:token>", invitations.open_invitation, name="open_invitation"
    ),
    path("studio/invitation", invitations.show_invitation, name="invitation"),
    path(f"{organization}/members", members.show_members, name="members"),
    path(f"{organization}/members/invite", members.invite_member, name="invite"),
    path(
        f"{organization}/second-factor",
        members.change_requirement,
        name="change_requirement",
    ),
    path(f"{organization}/leave", members.leave_organization, name="leave"),
    path(f"{member}/role", members.change_role, name="change_role"),
    path(f"{member}/remove", members.remove_member, name="remove_member"),
    path(f"{invitation}/resend", members.resend_invitation, name="resend_invitation"),
    path(
        f"{invitation}/withdraw",
        members.withdraw_invitation,
        name="withdraw_invitation",
    ),
    path(f"{organization}/log", audit_log.show_log, name="log"),
    path(f"{organization}/log.csv", audit_log.download_log, name="log_csv"),
    path(f"{organization}/webhooks", webhooks.show_webhooks, name="webhooks"),
    path(f"{organization}/webhooks/new", webhooks.new_webhook, name="new_webhook"),
    path(webhook, webhooks.show_webhook, name="webhook"),
    path(f"{webhook}/secret", webhooks.rotate_secret, name="rotate_secret"),
    path(f"{webhook}/enable", webhooks.enable_webhook, name="enable_webhook"),
    path(f"{webhook}/disable", webhooks.disable_webhook, name="disable_webhook"),
    path(f"{webhook}/example", webhooks.send_example, name="send_example"),
    path(f"{webhook}/recover", webhooks.recover_webhook, name="recover_webhook"),
    path(f"{webhook}/remove", webhooks.remove_webhook, name="remove_webhook"),
    path(delivery, webhooks.show_delivery, name="delivery"),
    path(f"{delivery}/resend", webhooks.resend_delivery, name="resend_delivery"),
    *exchange_routes("connection"),
    *exchange_routes("credential"),
    *exchange_routes("verification"),
]
