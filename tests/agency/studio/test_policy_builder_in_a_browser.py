"""The builder of policies in Chromium: by fields, as JSON, and back."""

import json

import pytest

from tests.agency.studio.test_policies import WHOLE
from tests.support.chromium import MARKS
from verifications.models import VerificationPolicy

pytestmark = MARKS


def press(tab, do):
    """Press a button, and wait for the page that follows."""
    with tab.expect_navigation():
        tab.click(f"form.builder button[name=do][value='{do}']:not(.hidden)")


@pytest.fixture
def builder(page, browser, url, definition):
    """The tab of Fay, at the builder with the attributes of a definition."""
    page.sign_in(browser)
    page.open(f"{url}/policies/new?definition={definition.pk}")
    press(page.tab, "builder")
    return page.tab


def test_and_and_or_are_built_and_go_to_json_and_back_unchanged(builder, definition):
    press(builder, "add_any:0")
    assert builder.url.endswith("#item-0")
    builder.fill("[name=item_0_any_1_issuer]", "did1")
    builder.fill("[name=item_0_any_1_schema]", "did1:2:Degree:1.0")
    press(builder, "json")
    first = json.loads(builder.input_value("#policy"))
    assert first["attributes"][0]["restrictions"] == [
        {"credentialDefinitionId": definition.definition_id},
        {"schemaId": "did1:2:Degree:1.0", "issuerDid": "did1"},
    ]
    builder.fill("#policy", json.dumps(WHOLE))
    press(builder, "builder")
    assert builder.input_value("[name=item_0_any_1_value]") == " Bern "
    press(builder, "json")
    assert json.loads(builder.input_value("#policy")) == WHOLE
    press(builder, "builder")
    press(builder, "save")
    assert VerificationPolicy.objects.get().unsealed_body() == WHOLE


def test_enter_in_a_field_saves_and_never_removes(builder):
    with builder.expect_navigation():
        builder.press("[name=version]", "Enter")
    assert VerificationPolicy.objects.get().name == "Check of Degree"


def test_a_policy_is_tried_without_json(builder):
    press(builder, "try")
    press(builder, "add_sample")
    for number, value in enumerate(["Ann", "2020"]):
        builder.fill(f"#id_sample_0_{number}", value)
    press(builder, "run")
    assert "could answer" in builder.inner_text("#results")
