import subprocess
import sys
from functools import partial
from hashlib import sha256
from pathlib import Path

import anoncreds as library
import base58
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import AgencyError, Invalid, PeerError, Unavailable
from tests.fixtures import (
    ALICE_LINK_SECRET,
    FIRST_LIST,
    issue,
    ledger,
    revocation_info,
    stored,
    stored_registry,
    tails_path,
)
from tests.support.keys import resize_at_once, stored_spare_key
from tests.support.paths import ROOT
from tests.support.texts import CHARACTERS
from wallets import anoncreds
from wallets.anoncreds import SubProof

FABER = "Th7MpTaRZVRYnPiabds81Y"
VALUES = {"name": "Alice", "degree": "Maths", "age": "28"}
BADGE = {"Full Name": "Alice", "level": "7"}


def sha(text):
    return str(int.from_bytes(sha256(text.encode()).digest(), "big"))


# As the reference implementation encodes it; sha() is compared with it below.
SHA_ALICE = (
    "27034640024117331033063128044004318218486816931520886405535659934417438781507"
)


def offer_and_request(name="degree", link_secret=ALICE_LINK_SECRET):
    one = stored(name)
    offer = anoncreds.create_offer(one.schema_id, one.definition_id, one.key_proof)
    return offer, *anoncreds.create_request(offer, one.public, link_secret, FABER)


def signed(name="degree", values=VALUES, place=None):
    """A credential as its issuer sends it, and what its holder needs to read it."""
    one, (offer, request, metadata) = stored(name), offer_and_request(name)
    given = (one.public, one.private, offer, request, values)
    return anoncreds.create_credential(*given, place), metadata


def refusal(kind, call, *arguments):
    """Return the code of the error of this kind that the call raises."""
    with pytest.raises(kind) as refused:
        call(*arguments)
    return refused.value.code


def test_a_nonce_is_an_80_bit_number_without_leading_zeros():
    nonces = [anoncreds.generate_nonce() for _ in range(50)]
    assert all(nonce == str(int(nonce)) and int(nonce) < 2**80 for nonce in nonces)
    assert len(set(nonces)) == 50


def test_every_link_secret_is_another_number():
    first, second = anoncreds.create_link_secret(), anoncreds.create_link_secret()
    assert first.isdecimal() and second.isdecimal() and first != second


@pytest.fixture
def resized(monkeypatch):
    """A function that makes definitions of a stored spare key, in this process."""
    monkeypatch.setattr("wallets.anoncreds.issuing.run_resizing", resize_at_once)
    return partial(anoncreds.resize_definition, stored_spare_key())


def test_a_new_definition_issues_a_credential_that_proves_itself(resized):
    schema = {"issuerId": FABER, "name": "Pet", "version": "1.0"}
    schema["attrNames"] = ["Pet Name"]
    schema_id, definition_id = f"{FABER}:2:Pet:1.0", f"{FABER}:3:CL:1:default"
    made = resized(schema_id, schema, FABER, "default", False)
    offer = anoncreds.create_offer(schema_id, definition_id, made.key_proof)
    request, metadata = anoncreds.create_request(offer, made.public, "1", FABER)
    credential = anoncreds.create_credential(
        made.public, made.private, offer, request, {"Pet Name": "Rex"}
    )
    held = anoncreds.process_credential(credential, metadata, "1", made.public)
    asked = proof_request({"pet": {"name": "Pet Name"}})
    public = {schema_id: schema}, {definition_id: made.public}
    shown = anoncreds.create_presentation(
        asked, [SubProof(held, {"pet": True}, [])], {}, "1", *public
    )
    assert anoncreds.verify_presentation(shown, asked, *public)


def test_a_schema_that_cannot_be_used_is_the_callers_mistake(resized):
    given = ("s", {"attrNames": ["Name", "name"]}, FABER, "default", False)
    assert refusal(Invalid, resized, *given) == "invalid_definition"


def test_a_definition_with_revocation_issues_without_a_registry():
    held, one = issue(stored("badge"), BADGE), stored_registry("first")
    assert held["rev_reg_id"] is None and anoncreds.revocation_index(held) is None
    given = (held, one.public, one.status_lists[0], "")
    code = refusal(Invalid, anoncreds.create_revocation_state, *given)
    assert code == "not_revocable"


def test_a_credential_holds_the_text_and_our_encoding_of_it():
    credential = issue(stored("degree"), VALUES | {"age": "007"})
    assert credential["values"]["age"] == {"raw": "007", "encoded": "7"}
    assert credential["values"]["name"] == {"raw": "Alice", "encoded": SHA_ALICE}


def test_a_request_names_a_did_for_legacy_identifiers_and_entropy_for_others():
    one = stored("degree")
    offer, request, _ = offer_and_request()
    assert request["prover_did"] == FABER and "entropy" not in request
    qualified = offer | {"cred_def_id": "did:web:faber.example:definition"}
    request, _ = anoncreds.create_request(
        qualified, one.public, ALICE_LINK_SECRET, "blind"
    )
    assert request["entropy"] == "blind" and "prover_did" not in request


def test_an_offer_or_request_that_does_not_fit_is_refused():
    one, (offer, request, _) = stored("degree"), offer_and_request()
    given = (offer, stored("badge").public, ALICE_LINK_SECRET, FABER)
    assert refusal(PeerError, anoncreds.create_request, *given) == "offer_refused"
    other, _, _ = offer_and_request()
    given = (one.public, one.private, other, request, VALUES)
    assert refusal(PeerError, anoncreds.create_credential, *given) == "request_refused"


def test_the_peer_is_not_blamed_for_our_keys_and_offer():
    one, (offer, request, _) = stored("degree"), offer_and_request()
    for place in range(3):
        ours = [one.public, one.private, offer]
        ours[place] = {}
        with pytest.raises(Exception) as failed:
            anoncreds.create_credential(*ours, request, VALUES)
        assert not isinstance(failed.value, AgencyError)


@pytest.mark.parametrize(
    "values", [{"na\0me": "x"}, {"name": "Ali\0ce"}, {"name": "\ud800"}]
)
def test_text_that_the_library_would_change_is_refused(values):
    assert refusal(Invalid, signed, "degree", values) == "invalid_values"


def test_a_credential_that_was_changed_is_refused_without_quoting_it():
    public, (credential, metadata) = stored("degree").public, signed()
    with pytest.raises(PeerError):
        anoncreds.process_credential(credential, metadata, "1", public)  # a stranger
    credential["values"]["age"] = {"raw": "99", "encoded": "99"}
    with pytest.raises(PeerError) as refused:
        anoncreds.process_credential(credential, metadata, ALICE_LINK_SECRET, public)
    assert refused.value.code == "credential_refused"
    assert "99" not in str(refused.value) and refused.value.__suppress_context__


def test_a_new_registry_revokes_one_of_its_credentials(tmp_path):
    one = stored("badge")
    registry_id = f"{FABER}:4:{one.definition_id}:CL_ACCUM:new"
    registry = new_registry(tmp_path, "new")
    keys = registry.public, registry.private
    first = anoncreds.create_status_list(one.public, registry_id, *keys, FABER, 100)
    assert first["revRegDefId"] == registry_id
    assert first["revocationList"] == [0, 0, 0, 0]
    sent, metadata = signed("badge", BADGE, anoncreds.RevocationSlot(*keys, first, 3))
    assert sent["rev_reg_id"] == registry_id and anoncreds.revocation_index(sent) == 3
    held = anoncreds.process_credential(
        sent, metadata, ALICE_LINK_SECRET, one.public, registry.public
    )
    second = anoncreds.update_status_list(one.public, *keys, first, [3], 200)
    assert second["revocationList"] == [0, 0, 0, 1] and second["timestamp"] == 200
    public = {registry_id: registry.public}, [first, second]
    for status_list, is_shown in ((first, True), (second, False)):
        given = (held, registry.public, status_list, registry.tails_path, public)
        assert shows_not_revoked(*given) is is_shown


def new_registry(folder, tag="t", size=4, one=None, public=None):
    one = one or stored("badge")
    given = (one.definition_id, public or one.public, FABER, tag, size, str(folder))
    return anoncreds.create_registry(*given)


def shows_not_revoked(held, registry_public, status_list, path, public):
    known, at = ledger(), status_list["timestamp"]
    period = {"non_revoked": {"from": at, "to": at}}
    asked = proof_request({"level": {"name": "level"}}) | period
    state = anoncreds.create_revocation_state(held, registry_public, status_list, path)
    shown = present(asked, SubProof(held, {"level": True}, [], at, state))
    given = (shown, asked, known.schemas, known.definitions)
    return anoncreds.verify_presentation(*given, *public)


def test_a_tails_file_is_named_by_its_hash(tmp_path):
    made = new_registry(tmp_path)
    path = Path(made.tails_path)
    content = path.read_bytes()
    assert path.parent == tmp_path and len(content) == (2 * 4 + 1) * 128 + 2
    assert path.name == made.public["value"]["tailsHash"]
    assert path.name == base58.b58encode(sha256(content).digest()).decode()


@pytest.mark.parametrize("name, size", [("degree", 8), ("badge", 1), ("badge", -1)])
def test_a_registry_needs_a_definition_with_revocation_and_a_place(
    name, size, tmp_path
):
    code = refusal(Invalid, new_registry, tmp_path, "t", size, stored(name))
    assert code == "invalid_registry" and not list(tmp_path.iterdir())


def test_a_tails_file_that_cannot_be_written_is_not_the_callers_mistake(tmp_path):
    with pytest.raises(Unavailable):
        new_registry(tmp_path / "nowhere")
    public = stored("badge").public
    broken = public | {"value": public["value"] | {"primary": {}}}
    with pytest.raises(Exception) as failed:
        new_registry(tmp_path, public=broken)
    assert not isinstance(failed.value, AgencyError), "nor is that a lack of tails"


def update(revoked, timestamp=FIRST_LIST + 10**6):
    one = stored_registry("first")
    lists = one.status_lists[1]
    return anoncreds.update_status_list(
        stored("badge").public, one.public, one.private, lists, revoked, timestamp
    )


@pytest.mark.parametrize(
    "revoked, code",
    [
        *[([index], "unknown_index") for index in (0, 8, -1)],
        *[(indexes, "already_revoked") for indexes in ([2], [3, 2], [3, 3])],
    ],
)
def test_a_place_is_revoked_once_and_only_if_there_is_one(revoked, code):
    assert refusal(Invalid, update, revoked) == code


def test_a_list_is_not_earlier_than_the_one_before():
    last = stored_registry("first").status_lists[1]["timestamp"]
    assert refusal(Invalid, update, [3], last - 1) == "timestamp_earlier"
    assert update([3], last)["timestamp"] == last


def test_many_places_are_revoked_at_once_and_a_list_can_be_made_anew():
    assert update([1, 7, 4])["revocationList"] == [0, 1, 1, 0, 1, 0, 0, 1]
    before, after = stored_registry("first").status_lists[1], update([])
    assert after == before | {"timestamp": FIRST_LIST + 10**6}


@pytest.mark.parametrize(
    "index, code",
    [(2, "already_revoked"), *[(index, "unknown_index") for index in (0, 8, -1)]],
)
def test_a_credential_gets_no_place_that_cannot_be_used(index, code):
    newest = stored_registry("first").status_lists[-1]
    place = revocation_info("first", index)._replace(status_list=newest)
    assert refusal(Invalid, signed, "badge", BADGE, place) == code


def test_a_holder_needs_the_registry_that_the_credential_names():
    sent, metadata = signed("badge", BADGE, revocation_info("first", 3))
    for registry in (None, stored_registry("second").public):
        given = (sent, metadata, ALICE_LINK_SECRET, stored("badge").public, registry)
        code = refusal(PeerError, anoncreds.process_credential, *given)
        assert code == "credential_refused"


def test_the_state_for_a_revoked_place_is_made_and_worthless():
    held = issue(stored("badge"), BADGE, place=("first", 2))
    one = stored_registry("first")
    public = {one.registry_id: one.public}, one.status_lists
    path = tails_path(one.public)
    for status_list, is_shown in zip(one.status_lists[:2], (True, False), strict=True):
        given = (held, one.public, status_list, path, public)
        assert shows_not_revoked(*given) is is_shown


def proof_request(attributes=None, predicates=None):
    return {
        "name": "Proof",
        "version": "1.0",
        "nonce": "123456789",
        "requested_attributes": attributes or {},
        "requested_predicates": predicates or {},
    }


def present(request, *entries):
    known = ledger()
    return anoncreds.create_presentation(
        request, entries, {}, ALICE_LINK_SECRET, known.schemas, known.definitions
    )


def test_one_attribute_is_shown_in_one_entry_and_compared_in_another():
    credential = issue(stored("degree"), VALUES)
    request = proof_request(
        {"shown": {"name": "age"}},
        {"adult": {"name": "age", "p_type": ">=", "p_value": 18}},
    )
    shown = SubProof(credential, {"shown": True}, [])
    compared = SubProof(credential, {}, ["adult"])
    known = ledger()
    presentation = present(request, shown, compared)
    given = (presentation, request, known.schemas, known.definitions)
    assert anoncreds.verify_presentation(*given)
    with pytest.raises(PeerError):
        present(request, SubProof(credential, {"shown": True}, ["adult"]))


def test_a_predicate_that_does_not_hold_cannot_be_presented():
    request = proof_request({}, {"old": {"name": "age", "p_type": ">", "p_value": 28}})
    entry = SubProof(issue(stored("degree"), VALUES), {}, ["old"])
    assert refusal(PeerError, present, request, entry) == "presentation_refused"


@pytest.mark.parametrize("presentation", [{}, [], None, "text", {"proof": "\ud800"}])
def test_what_is_no_presentation_does_not_verify(presentation):
    given = (presentation, proof_request(), {}, {})
    assert anoncreds.verify_presentation(*given) is False


@pytest.mark.parametrize(
    "raw, encoded",
    [
        ("Alice", SHA_ALICE), ("", sha("")), ("28", "28"), ("0", "0"), ("-0", "0"),
        ("+5", "5"), ("-5", "-5"), ("007", "7"), ("0" * 79 + "7", "7"),
        ("0" * 80 + "7", sha("0" * 80 + "7")), ("2147483647", "2147483647"),
        ("-2147483648", "-2147483648"), ("2147483648", sha("2147483648")),
        ("1.0", sha("1.0")),
    ],
)  # fmt: skip
def test_whole_numbers_of_32_bits_stand_for_themselves_and_all_else_for_its_hash(
    raw, encoded
):
    assert anoncreds.encode_value(raw) == encoded


@settings(deadline=None)
@given(
    st.one_of(
        st.text(CHARACTERS),
        st.integers().map(str),
        st.from_regex(r"\A[ +-]?[0-9_٠-٩]{1,11}\Z", alphabet=CHARACTERS),
    )
)
def test_the_encoding_is_that_of_the_library(raw):
    raw = raw.replace("\0", "").encode(errors="replace").decode()
    theirs = library.encode_credential_attributes({"a": raw})
    assert anoncreds.encode_value(raw) == theirs["a"]


@pytest.mark.parametrize(
    "raw, encoded",
    [
        ("7", "7"), ("01067", "1067"), ("-0", "0"), ("+5", "5"), ("Alice", SHA_ALICE),
        ("0" * 79 + "7", "7"), ("-" + "0" * 79 + "7", "-7"),
    ],
)  # fmt: skip
def test_an_integer_may_be_written_with_a_sign_and_leading_zeros(raw, encoded):
    assert anoncreds.is_encoding_of(raw, encoded)


@pytest.mark.parametrize(
    "raw, encoded",
    [
        ("Bob", SHA_ALICE), ("7 apples", "7"), ("8", "7"), ("7", "07"),
        ("2147483648", "2147483648"), ("7_0", "70"), ("٧٠", "70"), (" 70", "70"),
        ("70\n", "70"), ("0" * 80 + "7", "7"), ("0" * 50_000, "0"),
        ("9" * 5000, "7"), ("\ud800", "7"),
    ],
)  # fmt: skip
def test_no_other_number_is_the_encoding_of_a_text(raw, encoded):
    assert not anoncreds.is_encoding_of(raw, encoded)


def test_names_are_compared_without_capitals_and_spaces():
    for name in ("Full Name", " fullNAME "):
        assert anoncreds.normalise_name(name) == "fullname"
    assert anoncreds.normalise_name("Full\tName") != "fullname"


FIRST_CALLS = """
import sys, threading
import wallets.anoncreds as ours

sys.setswitchinterval(1e-6)
start, failed = threading.Barrier(16), []

def call():
    start.wait()
    try:
        ours.generate_nonce()
    except Exception as error:
        failed.append(str(error))

threads = [threading.Thread(target=call) for _ in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
sys.exit(len(failed))
"""


@pytest.mark.slow
def test_many_threads_may_be_the_first_to_use_the_library():
    for _ in range(3):
        ran = subprocess.run([sys.executable, "-c", FIRST_CALLS], cwd=ROOT, check=False)
        assert ran.returncode == 0
