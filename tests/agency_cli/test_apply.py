"""`agency-cli apply FILE`, with a served API."""

import re

import pytest

from agency_cli.__main__ import main
from agency_cli.client import AgencyClient, Unreachable
from tests.support.paths import ROOT
from webhooks.models import Webhook

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = (ROOT / "docs" / "command-line.md").read_text()
[EXAMPLE] = re.findall("```yaml\n(.*?)```", PAGE, re.DOTALL)
FILE = re.sub(" +#.*", "", EXAMPLE).replace(
    "department]\n", "department]\n    reference: hr\n"
)


@pytest.fixture
def applies(faber, live_server, tmp_path, monkeypatch, capsys):
    """Apply a text with options. Return the exit code and what was printed."""
    monkeypatch.setenv("ACCESS_TOKEN", faber.made.access_token)
    monkeypatch.setenv("SUBSCRIPTION_KEY", faber.made.subscription_key)
    file = tmp_path / "agency.yaml"

    def apply(text, *options):
        file.write_text(text)
        code = main(["apply", "--url", live_server.url, str(file), *options])
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return apply


def counts(organization):
    paths = "definitions/credentials verificationPolicies webhooks kiosks"
    return [len(organization.get(f"/{path}")) for path in paths.split()]


def test_a_file_is_made_once_with_its_names_as_ids(faber, applies):
    code, shown = applies(FILE, "--diff")
    assert (code, counts(faber)) == (0, [0, 0, 0, 0])
    assert shown.count("+ ") == 4 and "+ definition Employee badge 1.0 default" in shown
    code, shown = applies(FILE)
    assert (code, counts(faber)) == (1, [0, 0, 0, 0])
    assert "give --yes" in shown
    code, shown = applies(FILE, "--yes")
    assert (code, counts(faber)) == (0, [1, 1, 1, 1])
    assert "secret (shown once): whsec_" in shown and "/kiosk/" in shown
    [policy] = faber.get("/verificationPolicies")
    [definition] = faber.get("/definitions/credentials")
    [restriction] = policy["attributes"][0]["restrictions"]
    assert restriction["credentialDefinitionId"] == definition["definitionId"]
    assert faber.get("/kiosks")[0]["policyId"] == policy["policyId"]
    code, shown = applies(FILE, "--yes")
    assert (code, counts(faber)) == (0, [1, 1, 1, 1])
    assert "Nothing to do." in shown and shown.count("= ") == 4


def test_what_can_be_changed_is_and_what_is_not_named_stays(faber, applies):
    applies(FILE, "--yes")
    changed = FILE.replace("[credential_issued]", "[credential_issued, verification]")
    code, shown = applies(changed.replace("    reference: hr\n", ""), "--yes")
    assert code == 0 and "~ webhook https://hooks.example/agency" in shown
    assert Webhook.objects.get().message_types == ["credential_issued", "verification"]
    assert faber.get("/definitions/credentials")[0]["reference"] == "hr"


CANNOT_BE_DONE = [
    ("department]", "city]", "is there with another attributes"),
    ("attributeNames: [name]", "attributeNames: [department]", "policy Works here"),
    ("shownItems: [Who]", "seconds: 9", "another seconds, which cannot be changed"),
    ('"1.0"\n    attributes: [', "1.0\n    attributes: [", 'a text, in "quotes"'),
    ("    shownItems", "    showItems", "kiosks[0]: showItems is unknown"),
    ("policy: Works here 1.0", "policy: Works there", "no policy Works there"),
    ("policy: Works here 1.0", "policy: Works here", "no policy Works here,"),
    ("definitions:", "definitons:", "give a mapping with the lists definitions"),
    ("kiosks:", "kiosks: [", "it is not YAML"),
]


def test_what_cannot_be_done_is_said_before_anything_is(faber, applies):
    applies(FILE, "--yes")
    for old, new, says in CANNOT_BE_DONE:
        assert old in FILE
        code, shown = applies(FILE.replace(old, new), "--yes")
        assert code == 1 and says in shown, new
        assert counts(faber) == [1, 1, 1, 1], new


def test_what_the_agency_refuses_is_shown_by_field(faber, applies):
    text = FILE.replace("[credential_issued]", "[credential_isued]")
    code, shown = applies(text, "--yes")
    assert code == 1 and "messageTypes" in shown and "The agency refuses" in shown


def test_a_secret_that_was_lost_with_its_answer_is_told_of(faber, applies, monkeypatch):
    """The call had its effect, and the answer to it never came."""
    send = AgencyClient.open_request
    lost = []

    def lose_first(client, request, *options):
        answer = send(client, request, *options)
        if (
            request.get_method() == "POST"
            and request.selector == "/webhooks"
            and not lost
        ):
            lost.append(answer.read())
            raise Unreachable("the connection was reset")
        return answer

    monkeypatch.setattr(AgencyClient, "open_request", lose_first)
    code, shown = applies(FILE, "--yes")
    assert (code, counts(faber)) == (0, [1, 1, 1, 1])
    assert "its secret was lost: rotate it" in shown
    assert "url (shown once)" in shown, "what comes after it is made"


def test_a_policy_may_allow_the_twin_of_a_definition_that_it_names(
    faber, applies, settings
):
    text = FILE.replace(
        "Employee badge 1.0\n", "Employee badge 1.0\n            orTwin: true\n"
    )
    applies(text, "--yes")
    settings.PUBLIC_URL = "https://agency.example.org"
    faber.put("/tenants/webvhDid", {})
    [own] = faber.get("/definitions/credentials")
    faber.post(f"/definitions/credentials/{own['definitionId']}/twin")
    code, shown = applies(text, "--diff")
    assert code == 0 and "Nothing to do." in shown
    other = text.replace("Works here", "Works there").replace("Front", "Back")
    code, shown = applies(other, "--yes")
    assert (code, counts(faber)) == (0, [2, 2, 1, 2]), shown
    for policy in faber.get("/verificationPolicies"):
        [restriction] = policy["attributes"][0]["restrictions"]
        named = {"credentialDefinitionId": own["definitionId"], "orTwin": True}
        assert restriction == named
