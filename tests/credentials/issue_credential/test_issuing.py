"""Rules of issuing between hosted parties that are easy to get wrong."""

import pytest

from connections.didcomm import message as didcomm
from core.errors import PeerError
from core.work import transactions
from credentials import messages
from credentials.issue_credential import handlers
from credentials.models import Credential, RevocationRegistry
from tests.support.errors import assert_error, error_of
from tests.support.steps import step
from wallets import anoncreds

VALUES = {"name": "Alice", "level": "7"}


@step
def alice(faber):
    return faber.hosts("Alice")


@step
def badge(faber):
    return faber.defines("name", "level")


def test_nothing_is_offered_without_a_peer_or_its_values(faber, alice, badge):
    body = {"definitionId": badge["definitionId"]}
    body |= {"connectionId": faber.invites()["connectionId"]}
    assert_error(error_of(faber.post, "/credentials", body), 409, "wrong_state")
    wrong = {"name": "A"}, VALUES | {"more": "x"}, {"Name": "A", "level": "7"}, {}
    for values in wrong:
        error = error_of(faber.offers, alice, badge, values)
        assert_error(error, 400, "wrong_attributes")
    assert not Credential.objects.exists()


def test_values_are_needed_when_it_is_issued_or_replaced_then(faber, alice, badge):
    error = error_of(faber.offers, alice, badge, automaticIssuance=True)
    assert_error(error, 400, "values_missing")
    for offered in (None, VALUES):
        made = faber.offers(alice, badge, offered)
        path = f"/credentials/{made['credentialId']}"
        shown = alice.newest("credentials")["values"]
        assert shown == (offered or {"name": "", "level": ""})
        alice.accepts_offer()
        if not offered:
            assert_error(error_of(faber.put, path), 400, "values_missing")
        wrong = error_of(faber.put, path, {"name": "A"})
        assert_error(wrong, 400, "wrong_attributes")
        assert faber.get(path)["state"] == "Requested"
        faber.put(path, VALUES | {"level": "8"})
        assert alice.newest("credentials")["values"]["level"] == "8"
        assert faber.get(path)["values"]["level"] == "8"


def test_what_both_parties_need_is_computed_once_before_the_locks(
    faber, alice, badge, monkeypatch
):
    calls = []

    def noted(module, name):
        function = getattr(module, name)

        def run(*given):
            calls.append(name)
            return function(*given)

        monkeypatch.setattr(module, name, run)

    made = faber.offers(alice, badge, VALUES, automaticIssuance=True)
    noted(anoncreds, "create_credential")
    noted(anoncreds, "process_credential")
    noted(Credential, "lock_to_act")
    alice.accepts_offer()
    assert faber.get(f"/credentials/{made['credentialId']}")["state"] == "Issued"
    computed = ["create_credential", "process_credential"]
    # The holder's lock, then that of the issuer.
    assert calls == [*computed, "lock_to_act", "lock_to_act"]


ANY_TEXTS = {
    "empty": "", "blank": " ", "wide": "Zoë 😀", "long": "x" * 10_000,
    "minus": "-0", "zeros": "00", "digit": "٣", "large": "2147483648",
}  # fmt: skip


def test_any_text_is_issued_as_it_is(faber, alice):
    definition = faber.defines(*ANY_TEXTS)
    alice.receives(faber, definition, ANY_TEXTS)
    assert alice.newest("credentials")["values"] == ANY_TEXTS
    items = [{"policyName": name} for name in ANY_TEXTS]
    asked = faber.asks(alice, attributes=items)
    alice.auto_selects()
    found = faber.get(f"/verifications/{asked['verificationId']}")
    shown = {name: proven["value"] for name, proven in found["proof"].items()}
    assert (shown, found["isValid"]) == (ANY_TEXTS, True)


def test_a_deleted_definition_finishes_its_open_offer_once(faber, alice, badge):
    path = f"/credentials/{faber.offers(alice, badge, VALUES)['credentialId']}"
    faber.delete(f"/definitions/credentials/{badge['definitionId']}")
    assert_error(error_of(faber.offers, alice, badge, VALUES), 404, "not_found")
    mine = alice.accepts_offer()
    faber.put(path)
    assert alice.newest("credentials")["state"] == "Issued"
    assert_error(error_of(alice.post, f"/credentials/{mine}"), 409, "wrong_state")
    assert_error(error_of(faber.put, path), 409, "wrong_state")


def test_a_credential_that_lost_its_connection_cannot_be_issued(faber, alice, badge):
    path = f"/credentials/{faber.offers(alice, badge, VALUES)['credentialId']}"
    alice.accepts_offer()
    faber.delete(f"/connections/{alice.known_as(faber)}")
    assert_error(error_of(faber.put, path), 409, "wrong_state")
    assert faber.get(path)["state"] == "Rejected"
    assert alice.newest("credentials")["state"] == "Rejected"


def test_a_credential_whose_registry_has_no_id_is_refused(faber, alice, badge):
    faber.offers(alice, badge, VALUES)
    alice.accepts_offer()
    holder = Credential.objects.get(role=Credential.Role.HOLDER)
    for registry_id in (5, ["x"], "x" * 501):
        issued = {"cred_def_id": badge["definitionId"], "rev_reg_id": registry_id}
        body = messages.build_issue(issued, holder.thread_id, holder.message_format)
        with pytest.raises(PeerError, match="rev_reg_id"), transactions.atomic():
            handlers.receive_credential(holder, didcomm.read(body))


def test_a_credential_whose_registry_is_of_another_definition_is_refused(faber, alice):
    """The library takes it, and whoever controls that registry could revoke it."""
    pass_card = faber.defines("name", "level", supportRevocation=True)
    other = faber.defines("name", "level", tag="other", supportRevocation=True)
    named = RevocationRegistry.objects.get(
        definition__definition_id=other["definitionId"]
    )
    faber.offers(alice, pass_card, VALUES)
    alice.accepts_offer()
    holder = Credential.objects.get(role=Credential.Role.HOLDER)
    issued = {"cred_def_id": pass_card["definitionId"], "rev_reg_id": named.registry_id}
    body = messages.build_issue(issued, holder.thread_id, holder.message_format)
    with (
        pytest.raises(PeerError, match="another definition") as refused,
        transactions.atomic(),
    ):
        handlers.receive_credential(holder, didcomm.read(body))
    assert refused.value.code == "credential_refused"


def test_what_cannot_be_signed_may_be_deleted(faber, alice, badge, monkeypatch):
    """It is declined, unless nothing is left to decline."""

    def fails(self, **_):
        Credential.objects.filter(pk=self.pk).delete()
        raise PeerError("bad_request", "it cannot be signed")

    faber.offers(alice, badge, VALUES)
    alice.accepts_offer()
    monkeypatch.setattr(Credential, "issue", fails)
    issuer = Credential.objects.get(role=Credential.Role.ISSUER)
    handlers.issue_automatically(issuer)
    assert not Credential.objects.filter(pk=issuer.pk).exists()


def test_an_offer_that_names_an_attribute_twice_cannot_be_read():
    attributes = [{"name": "level", "value": value} for value in "78"]
    with pytest.raises(PeerError, match="twice"):
        messages.read_attributes({"attributes": attributes})
