"""The studio: pages on which people manage organizations and follow each exchange.

people              accounts/ (sign-in), members, invitations, pages (who may),
                    audit_log
organizations       organizations, overview, attention, checklist, settings_page, forms,
                    keys, requests, search_page, wallet_page, sandbox
lists               lists, list_search, live_lists, newest_first, objects
one object          exchange/
connect and issue   new_connection, new_credential, recipients, definitions,
                    definition_forms, card_design, bulks, bulk_forms, revoke_many
ask and verify      policies, policy_builder, policy_drafts, policy_samples,
                    card_policies, card_check, card_scans, conditions, kiosks
webhooks            events, webhooks, webhook_forms
the API             api_docs, api_forms, curl, error_codes
of all pages        menu, choices, form_tokens, urls
"""
