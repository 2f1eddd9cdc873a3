"""The exchange page in each state of each kind of object."""

import re

import pytest
from django.contrib.auth.models import Permission

from agency.words.states import next_step, outcome_of, step_label
from connections.models import Connection
from credentials.models import Credential
from tests.agency.admin.conftest import make_staff
from tests.agency.pages.catalog import LONG, TEMPLATES
from tests.agency.studio.conftest import browser_of, browser_with
from tests.agency.studio.exchange.conftest import text, url_of
from tests.support import walks
from verifications.models import Verification


@pytest.fixture
def support(db):
    """The browser of staff who may see everything."""
    sue = make_staff("sue")
    sue.user_permissions.add(*Permission.objects.filter(codename__startswith="view_"))
    return browser_of(sue)


def check_state(row, browser, support):
    page = text(browser.get(url_of(row)))
    step = f'aria-current="step">{step_label(row, outcome_of(row))}</li>'
    assert step in page, (row.role, row.state)
    assert next_step(row) in page, (row.role, row.state)
    assert str(row.public_id) in page
    # Support sees the same, and does nothing.
    path = f"/admin/{row._meta.label_lower.replace('.', '/')}/{row.pk}/change/"
    theirs = text(support.get(path))
    assert step in theirs, (row.role, row.state)
    assert not re.search(r"Send again|Cancel the|Reveal|csrf.*resend", theirs)


@pytest.mark.parametrize("role, state", Connection.EVENTS)
def test_each_state_of_a_connection_is_shown_with_what_happens_next(
    browser, support, walk, role, state
):
    check_state(walks.connection(walk, role, state), browser, support)


@pytest.fixture
def world(transactional_db, stored_keys):
    return TEMPLATES[LONG]()


@pytest.mark.parametrize("model", [Credential, Verification])
def test_each_state_of_an_exchange_is_shown_with_its_step_and_what_happens_next(
    world, support, model
):
    browser = browser_of(world.fay)
    for role, state in model.EVENTS:
        row = model.objects.filter(role=role, state=state, tenant=world.tenant).first()
        assert row, (role, state)
        check_state(row, browser, support)


def test_what_waits_behind_a_link_begins_with_its_qr_code(browser, faber):
    values = {"name": "Alice", "year": "2020"}
    definition = faber.defines(*values)["definitionId"]
    body = {"definitionId": definition, "credentialValues": values}
    faber.post("/credentials", body)
    page = text(browser.get(url_of(Credential.objects.get())))
    assert page.index("qr.svg") < page.index('id="state"')
    assert "Nobody has accepted it yet." in page


def test_a_card_and_its_sheet_begin_with_whom_it_is_for(browser, faber, college):
    values = {"name": "Alice <i>Doe</i>", "year": "2020"}
    definition = faber.defines(*values, recipientAttribute="name")["definitionId"]
    body = {"definitionId": definition, "credentialValues": values}
    faber.post("/credentials", body)
    row = Credential.objects.get()
    viewer = browser_with("viewer", college.tenant)
    named = "<bdi>Alice &lt;i&gt;Doe&lt;/i&gt;</bdi>"
    assert f"<h1>{named} · " in text(browser.get(url_of(row)))
    masked = text(viewer.get(url_of(row)))
    assert "<h1><bdi>••••••</bdi> · " in masked and "Alice" not in masked
    sheet = text(browser.get(f"{url_of(row)}/sheet"))
    assert named in sheet and f'href="{url_of(row)}"' in sheet
    assert viewer.get(f"{url_of(row)}/sheet").status_code == 403
    assert "Alice" not in text(browser.get(f"/i/{row.connection.token}/sheet"))
    row.decline("no")
    assert browser.get(f"{url_of(row)}/sheet").url == url_of(row)


def test_wallets_are_linked_and_what_ends_something_is_in_a_menu(browser, walk):
    offered, asked = walk.offers()["issuer"], walk.asks()["verifier"]
    held = Credential.objects.get(role="holder")
    wallet = f"/studio/organizations/{held.tenant_id}/wallets/{held.wallet_id}"
    assert f'href="{wallet}"' in text(browser.get(url_of(held)))
    assert browser.get(wallet).status_code == 200
    for row in (offered.connection, offered, asked):
        page = text(browser.get(url_of(row))).partition("<main")[2]
        first = page.index("button destructive")
        assert page.index('id="endings-details"') < first
        assert "</details>" not in page[page.index('id="endings-details"') : first]


def test_the_card_stands_without_its_values_until_they_are_revealed(browser, walk):
    row = walk.offers()["issuer"]
    value = next(iter(row.unsealed_values().values()))
    card = text(browser.get(url_of(row))).partition('class="id-card')[2]
    assert "id-blank" in card and value not in card.partition("<section")[0]
    shown = text(browser.send(f"{url_of(row)}/reveal", reason="To see the card"))
    card = shown.partition('class="id-card')[2].partition("<section")[0]
    assert value in card


def test_an_ended_connection_says_so(browser, walk):
    row = walks.connection(walk, "inviter", "Connected")
    row.end()
    page = text(browser.get(url_of(row)))
    assert 'aria-current="step">Ended</li>' in page
    assert "One side has ended the connection" in page


def test_the_states_before_the_end_are_shown_and_it_rests(browser, walk, monkeypatch):
    row = walks.credential(walk, "issuer", "Rejected")
    page = text(browser.get(url_of(row)))
    assert "data-watched" in page, "as webhooks are called soon"
    monkeypatch.setattr("agency.studio.exchange.page.WATCHED_AFTER_CHANGE", 0)
    assert "data-watched" not in text(browser.get(url_of(row)))
    assert re.findall(r"<li[^>]*>([\w ]+)</li>", page)[:2] == [
        "Offered",
        "Ended without a card",
    ]


def test_the_organizations_reference_is_among_the_facts_and_metadata_is_masked(
    browser, support, faber
):
    made = faber.invites(reference="order <4711>", metadata={"desk": "Nr. 3"})
    row = Connection.objects.get(connection_id=made["connectionId"])
    page = text(browser.get(url_of(row)))
    assert "<dt>Reference</dt><dd><bdi>order &lt;4711&gt;</bdi></dd>" in page
    assert "Nr. 3" not in page
    assert "4711" not in text(
        support.get(f"/admin/connections/connection/{row.pk}/change/")
    )
