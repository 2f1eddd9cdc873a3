"""The calls of the API that are not part of a cycle, for bench/fill.py.

Generators like those of bench/calls.py. A call without a name prepares others and is
not shown. Left out are calls that make keys or change all rows of an organization,
bulks, samples, and those of the provider API and the ledger.
"""

from bench.calls import SHOWN, VALUES, Call, Calls, Pair

LISTS = {
    "connections": "/connections?limit=100",
    "credentials": "/credentials?limit=100",
    "offered credentials": "/credentials?limit=100&state=Offered",
    "verifications": "/verifications?limit=100",
    "wallets": "/api/wallets?limit=100",
    "wallets by name": "/api/wallets?limit=100&sort=name",
    "definitions": "/definitions/credentials?limit=100",
    "schemas": "/definitions/schemas?limit=100",
    "webhooks": "/webhooks?limit=100",
    "events": "/events?limit=100",
    "days of statistics": "/statistics",
    "bulks": "/credentials/bulk?limit=100",
    "simulated holders": "/sandbox/holders",
    "request log": "/requestLog",
    "organizations": "/tenants",
    "networks": "/common/networks",
}
ASKED = {
    "name": "Bench",
    "version": "1.0",
    "attributes": [{"policyName": name, "attributeNames": [name]} for name in SHOWN],
}


def other_calls(pair: Pair, revocable: str) -> Calls:
    """The calls with the connection of a cycle, which is deleted at their end.

    revocable: the id of a revocable definition.
    """
    path = f"/connections/{pair.connection}"
    yield Call("read a connection", "GET", path)
    yield Call("read the protocols of a connection", "GET", f"{path}/protocols")
    yield Call("ping", "POST", f"{path}/ping")
    yield from write_messages(pair)
    yield from propose_credential(pair)
    yield from propose_verification(pair)
    yield from use_links(pair)
    yield from revoke(pair, revocable)
    yield from change_settings()
    yield from list_objects(pair)
    yield Call("delete a connection", "DELETE", path)
    yield from end_connection(pair)


def end_connection(pair: Pair) -> Calls:
    """End another connection of the same parties, and keep its record."""
    invited = yield Call("", "POST", "/connections")
    form = {"invitation": invited["invitation"]}
    yield Call("", "POST", f"{pair.wallet}/connections/invitation", form=form)
    path = f"/connections/{invited['connectionId']}/hangup"
    yield Call("end a connection", "POST", path)


def write_messages(pair: Pair) -> Calls:
    text = {"connectionId": pair.connection, "text": "Hello"}
    yield Call("send a message", "POST", "/messages", text)
    text = {"connectionId": pair.wallet_connection, "text": "Hello"}
    yield Call("send a message of a wallet", "POST", f"{pair.wallet}/messages", text)
    path = f"/messages/connection/{pair.connection}"
    yield Call("list messages", "GET", path)


def propose_credential(pair: Pair) -> Calls:
    """Propose, offer, counter the offer, offer again, decline, delete."""
    wallet = f"{pair.wallet}/credentials"
    body = {"definitionId": pair.definition, "credentialValues": VALUES}
    path = f"{wallet}/propose/{pair.wallet_connection}"
    mine = yield Call("propose a credential", "PUT", path, body)
    path = f"/credentials?connectionId={pair.connection}&state=Proposed"
    [theirs] = yield Call("list proposals of a connection", "GET", path)
    path = f"/credentials/{theirs['credentialId']}"
    yield Call("offer what is proposed", "PUT", f"{path}/offer")
    other = {"credentialValues": VALUES | {"level": "8"}}
    mine = f"{wallet}/{mine['credentialId']}"
    yield Call("counter an offer", "PUT", f"{mine}/propose", other)
    yield Call("", "PUT", f"{path}/offer")
    yield Call("read a credential", "GET", path)
    yield Call("decline an offer", "POST", f"{mine}/decline")
    path = f"/credentials/delete/{theirs['credentialId']}"
    yield Call("delete a credential", "DELETE", path)
    yield Call("delete a credential of a wallet", "DELETE", mine)


def propose_verification(pair: Pair) -> Calls:
    """Propose, ask, decline, delete."""
    wallet = f"{pair.wallet}/verifications"
    path = f"{wallet}/propose/{pair.wallet_connection}"
    mine = yield Call("propose a verification", "PUT", path, ASKED)
    path = f"/verifications?connectionId={pair.connection}&state=Proposed"
    [theirs] = yield Call("list proposals to verify", "GET", path)
    theirs = theirs["verificationId"]
    path = f"/verifications/proposal/{theirs}/connections/{pair.connection}"
    yield Call("ask for what is proposed", "PUT", path)
    mine = f"{wallet}/{mine['verificationId']}"
    path = f"{mine}/availableCredentials"
    yield Call("list what fits a request", "GET", path)
    yield Call("decline a request", "PUT", f"{mine}/decline")
    yield Call("delete a verification", "DELETE", f"/verifications/{theirs}")
    yield Call("delete a verification of a wallet", "DELETE", mine)


def use_links(pair: Pair) -> Calls:
    """Offer and ask without a connection."""
    offer = {"definitionId": pair.definition, "credentialValues": VALUES}
    offer["automaticIssuance"] = True
    made = yield Call("offer by a link", "POST", "/credentials", offer)
    path = f"{pair.wallet}/credentials/fromData"
    body = {"credentialData": made["offerData"]}
    yield Call("accept and issue by a link", "PUT", path, body)
    made = yield Call("ask by a link", "POST", "/verifications/policy", ASKED)
    path = f"{pair.wallet}/verifications/fromData/autoSelect"
    body = {"verificationData": made["verificationRequestData"]}
    yield Call("answer and verify by a link", "PUT", path, body)


def revoke(pair: Pair, definition: str) -> Calls:
    """Issue two credentials; revoke one by its id, the other by the definition."""
    for name in ("", "issue a revocable credential"):
        offer = {"definitionId": definition, "connectionId": pair.connection}
        offer |= {"credentialValues": VALUES, "automaticIssuance": True}
        offered = yield Call("", "POST", "/credentials", offer)
        path = f"{pair.wallet}/credentials"
        [mine] = yield Call("", "GET", f"{path}?state=Offered")
        yield Call(name, "POST", f"{path}/{mine['credentialId']}")
    yield Call("revoke", "DELETE", f"/credentials/{offered['credentialId']}")
    body = {"definitionId": definition}
    yield Call("revoke those of a definition", "POST", "/credentials/revoke", body)


def change_settings() -> Calls:
    """Make and delete a wallet with a link, a policy with a kiosk, and a webhook."""
    made = yield Call("create a wallet", "POST", "/api/wallets")
    path = f"/api/wallets/{made['walletId']}"
    yield Call("create a personal link", "POST", f"{path}/link")
    yield Call("read a personal link", "GET", f"{path}/link")
    yield Call("delete a wallet", "DELETE", path)
    made = yield Call("create a policy", "POST", "/verificationPolicies", ASKED)
    yield Call("list policies", "GET", "/verificationPolicies?limit=100")
    body = {"name": "Bench", "policyId": made["policyId"]}
    kiosk = yield Call("create a kiosk", "POST", "/kiosks", body)
    yield Call("list kiosks", "GET", "/kiosks?limit=100")
    yield Call("delete a kiosk", "DELETE", f"/kiosks/{kiosk['kioskId']}")
    path = f"/verificationPolicies/{made['policyId']}"
    yield Call("delete a policy", "DELETE", path)
    body = {"url": "https://other.example", "type": "Zapier"}
    body["messageTypes"] = ["verification"]
    made = yield Call("create a webhook", "POST", "/webhooks", body)
    path = f"/webhooks/{made['id']}"
    yield Call("read a webhook", "GET", path)
    yield Call("disable a webhook", "PUT", f"{path}/disable")
    yield Call("delete a webhook", "DELETE", path)


def list_objects(pair: Pair) -> Calls:
    for name, path in LISTS.items():
        yield Call(f"list {name}", "GET", path)
    [webhook] = yield Call("", "GET", "/webhooks")
    path = f"/webhooks/{webhook['id']}/deliveries?limit=100"
    yield Call("list calls of a webhook", "GET", path)
    for kind in ("connections", "credentials", "verifications"):
        yield Call(f"list {kind} of a wallet", "GET", f"{pair.wallet}/{kind}?limit=100")
