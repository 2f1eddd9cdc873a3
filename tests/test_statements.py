"""The number of SQL statements, savepoints and commits of each call of a cycle."""

import re
from contextlib import contextmanager

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from connections.models import InboundMessage
from connections.protocols import trust_ping
from tests.support.openid_wallet import OpenIdWallet
from tests.support.own_webvh import on_webvh
from tests.support.people import Organization
from tests.support.policies import attribute, policy

VALUES = {"name": "Alice", "level": "7"}
ASKED = [{"policyName": "name", "attributeNames": ["name"]}]
CONTROL = ("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE SAVEPOINT")
# Statements of each call, without BEGIN, COMMIT and savepoints.
# The last of those that answer an object reads it again, as the peer has moved it on.
INVITE, CONNECT, OFFER, ACCEPT, ASK, ANSWER = 4, 21, 11, 15, 10, 14
ACCEPT_REVOCABLE = 20
SAVEPOINTS = 9  # of the six calls together; each commits once
READ = 2
STORE = 3  # an envelope of another agent: the key, the row, its digest of long ago
LIST = 3
OWN_LIST = 2
# Of wallets of OpenID4VC, each call over the public routes.
OF_OPENID = {
    "offer": 13, "token": 8, "nonce": 1, "credential": 21, "ask": 12,
    "request": 4, "response": 10,
}  # fmt: skip
FIRST = dict.fromkeys(OF_OPENID, 100)


class Budget:
    """Counts what calls execute. Says all statements of a call that is over it."""

    def __init__(self):
        self.executed = []  # by all calls together

    @contextmanager
    def call(self, limit, commits=1):
        with CaptureQueriesContext(connection) as captured:
            yield
        executed = [query["sql"].strip() for query in captured.captured_queries]
        counted = [sql for sql in executed if not sql.startswith(CONTROL)]
        self.executed += executed
        shown = "\n".join(shortened(sql) for sql in executed)
        assert len(counted) <= limit, f"{len(counted)} statements:\n{shown}"
        assert commits is None or executed.count("COMMIT") == commits, shown


def shortened(sql):
    columns = re.compile(r"SELECT .*? FROM", re.DOTALL)
    return re.sub(r"\s+", " ", columns.sub("SELECT … FROM", sql, count=1))[:300]


@pytest.fixture
def definition(faber):
    """A definition and an organization that this process has used before."""
    definition, first = faber.defines("name", "level"), faber.hosts("First")
    first.receives(faber, definition, VALUES)
    faber.asks(first, attributes=ASKED)
    first.auto_selects()
    # From here on it is in the log that this key reads proofs today.
    faber.get("/verifications")
    faber.get("/verifications")
    return definition


def test_each_call_of_a_cycle_stays_within_its_budget(faber, definition):
    alice, budget = faber.hosts("Alice"), Budget()
    with budget.call(INVITE):
        invited = faber.invites()
    with budget.call(CONNECT):
        mine = alice.accepts_invitation(invited["invitation"])
    alice.known[faber] = (invited["connectionId"], mine["connectionId"])
    with budget.call(OFFER):
        offered = faber.offers(alice, definition, VALUES, automaticIssuance=True)
    received = alice.newest("credentials")["credentialId"]
    with budget.call(ACCEPT):
        alice.post(f"/credentials/{received}")
    with budget.call(ASK):
        asked = faber.asks(alice, attributes=ASKED)
    received = alice.newest("verifications")["verificationId"]
    with budget.call(ANSWER):
        alice.put(f"/verifications/{received}/autoSelect")
    assert faber.get(f"/credentials/{offered['credentialId']}")["state"] == "Issued"
    assert faber.get(f"/verifications/{asked['verificationId']}")["isValid"] is True
    savepoints = [sql for sql in budget.executed if sql.startswith("SAVEPOINT")]
    assert len(savepoints) <= SAVEPOINTS, "\n".join(map(shortened, budget.executed))


def test_a_revocable_credential_is_issued_in_the_transaction_that_accepts_it(
    faber, definition
):
    """The commit before it reserves the place in the registry."""
    alice = faber.hosts("Alice")
    revocable = faber.defines("name", "level", supportRevocation=True)
    alice.receives(faber, revocable, VALUES)
    offered = faber.offers(alice, revocable, VALUES, automaticIssuance=True)
    received = alice.newest("credentials")["credentialId"]
    with Budget().call(ACCEPT_REVOCABLE, commits=2):
        alice.post(f"/credentials/{received}")
    assert faber.get(f"/credentials/{offered['credentialId']}")["state"] == "Issued"


def test_did_webvh_takes_no_statement_more_than_the_local_network(
    transactional_db, stored_keys, settings
):
    taken = [count_exchange(faber) for faber in (Organization("A"), on_webvh(settings))]
    assert taken[0] == taken[1]


def count_exchange(organization):
    """The statements of a revocable credential and a proof, each the second one."""
    definition = organization.defines(*VALUES, supportRevocation=True)
    alice = organization.hosts("Alice")
    asked = {"attributes": ASKED, "revocationRequirement": {"validNow": True}}
    for _ in range(2):
        with CaptureQueriesContext(connection) as captured:
            alice.receives(organization, definition, VALUES)
            organization.asks(alice, **asked)
            alice.auto_selects()
        [seen, *_] = organization.get("/verifications")
        assert seen["isValid"]
        organization.get("/verifications")
    return len(captured)


def test_an_organization_lists_or_reads_what_it_has_in_two_statements(
    faber, definition, subtests
):
    for kind in ("connection", "credential", "verification"):
        with subtests.test(kind):
            with Budget().call(OWN_LIST, commits=0):
                [found] = faber.get(f"/{kind}s")
            with Budget().call(READ, commits=0):
                faber.get(f"/{kind}s/{found[f'{kind}Id']}")


def test_a_holder_lists_offers_in_three_statements_and_reads_one_in_two(
    faber, definition
):
    alice = faber.hosts("Alice")
    faber.offers(alice, definition, VALUES)
    with Budget().call(LIST, commits=0):
        [found] = alice.get("/credentials", state="Offered")
    assert found["state"] == "Offered"
    alice.accepts_offer()
    faber.put(f"/credentials/{faber.get('/credentials')[0]['credentialId']}")
    with Budget().call(READ, commits=0):
        seen = alice.get(f"/credentials/{found['credentialId']}")
    assert seen["state"] == "Issued"


def test_wallets_of_openid_stay_within_their_budget(faber, acme):
    """Their second card and answer: the first ones make keys and a status list."""
    card = faber.defines(*VALUES, formats=["dc+sd-jwt"], supportRevocation=True)
    of_card = {"definitionId": card["definitionId"], "credentialValues": VALUES}
    wish = of_card | {"automaticIssuance": True, "protocol": "openid4vci"}
    only = [{"credentialDefinitionId": card["definitionId"]}]
    asked = policy(attribute("name", restrictions=only)) | {"protocol": "openid4vp"}
    for limits in (FIRST, OF_OPENID):
        wallet, budget = OpenIdWallet(), Budget()
        # The first offer makes the key of credentials in a transaction of its own.
        with budget.call(limits["offer"], commits=2 if limits is FIRST else 1):
            made = faber.post("/credentials", wish)
        wallet.open(made["walletLinks"]["openid4vci"])
        with budget.call(limits["token"]):
            wallet.take_token()
        with budget.call(limits["nonce"], commits=0):
            body = wallet.request()
        with budget.call(limits["credential"]):
            wallet.keep(wallet.ask(body))
        with budget.call(limits["ask"]):
            made = acme.post("/verifications/policy", asked)
        with budget.call(limits["request"], commits=None):
            wallet.read_request(made["walletLinks"]["openid4vp"])
        answer = {"vp_token": wallet.vp_token()}
        answer |= {"state": wallet.request_object["state"]}
        envelope = wallet.encrypt(answer)
        with budget.call(limits["response"]):
            assert wallet.send(response=envelope).status_code == 200
    [seen, _] = acme.get("/verifications")
    assert seen["isValid"]


def test_an_envelope_is_stored_in_three_statements_without_a_savepoint(faber, phone):
    phone.connects(faber)
    envelopes = [phone.pack(phone.build(trust_ping.PING)) for _ in range(2)]
    phone.post(envelopes[0])  # this process knows the data key from now on
    budget = Budget()
    for data in (envelopes[1], envelopes[1]):  # a repetition takes no more
        with budget.call(STORE):
            assert phone.post(data).status_code == 202
    assert not [sql for sql in budget.executed if sql.startswith("SAVEPOINT")]
    assert InboundMessage.objects.filter(status="pending").count() == 2
