"""How the errors that tests got are compared with those of the OpenAPI document."""

import json

import pytest

from core.api.exceptions import plain_error_response
from tests.measures.errors import complaints, read_recorded
from tests.support import recorded_errors

GONE = ("getConnection", 404, "not_found")
TAKEN = ("createWallet", 409, "wallet_id_taken")
BUSY = ("listWallets", 429, "too_many_at_once")
BODY = {"message": "There is none."}


def compared(got, named, common=(), untested=None):
    of_document = dict.fromkeys(named, BODY)
    return complaints(
        dict.fromkeys(got, BODY), of_document, set(common), untested or {}
    )


def test_what_is_named_and_got_is_no_complaint():
    assert compared([GONE, TAKEN], [GONE, TAKEN]) == []


def test_what_is_not_named_is_told_with_its_operation():
    [complaint] = compared([GONE, TAKEN], [GONE])
    assert complaint.startswith("createWallet answered 409 wallet_id_taken")
    assert complaint.endswith("There is none.")


def test_what_no_test_got_is_told_but_for_those_with_a_reason():
    [complaint] = compared([GONE], [GONE, TAKEN])
    assert complaint.startswith("createWallet: no test got 409 wallet_id_taken")
    reason = {"createWallet": {"wallet_id_taken": "Nobody has tried."}}
    assert compared([GONE], [GONE, TAKEN], untested=reason) == []


@pytest.mark.parametrize("named", [[GONE], [GONE, TAKEN]])
def test_a_reason_that_nothing_needs_is_told(named):
    reason = {"createWallet": {"wallet_id_taken": "Nobody has tried."}}
    [complaint] = compared(named, named, untested=reason)
    assert complaint.startswith("createWallet: wallet_id_taken is in untested_errors")


def test_what_all_operations_answer_is_tested_with_one():
    common, other = {BUSY[1:]}, ("listKeys", *BUSY[1:])
    assert compared([BUSY], [BUSY, other], common) == []
    [complaint] = compared([], [BUSY, other], common)
    assert complaint.startswith("any operation: no test got 429 too_many_at_once")


def test_errors_of_operations_are_recorded_with_the_shortest_body(
    rf, tmp_path, monkeypatch
):
    monkeypatch.setattr(recorded_errors, "seen", {})
    for path, message in [
        ("/api/wallets/a/link", "There is no such wallet."),
        ("/api/wallets/b/link", "There is none."),
        ("/api/wallets/c/link", "There is no such wallet here."),
        ("/nowhere", "Nothing."),
    ]:
        response = plain_error_response(404, "not_found", message)
        recorded_errors.note_error(rf.get(path), response, tmp_path)
    [file] = tmp_path.iterdir()
    operations = [json.loads(line)[0] for line in file.read_text().splitlines()]
    assert operations == ["getPersonalLink"] * 2
    assert read_recorded(tmp_path) == {("getPersonalLink", 404, "not_found"): BODY}
