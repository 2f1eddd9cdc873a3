"""In whose words a holder reads what is asked."""

from types import SimpleNamespace

from agency.words.asking import label_asked
from verifications.proofs.policy import DEFINITION, Restriction
from verifications.proofs.proof_items import Item


def defined(label):
    design = {"labels": {"salary": {"en": label}}}
    return SimpleNamespace(
        design=design, schema=SimpleNamespace(attribute_names=["salary"])
    )


def asked(*definition_ids):
    restrictions = [Restriction({DEFINITION: one}) for one in definition_ids]
    return Item("item", ("salary",), ">=", 50_000, tuple(restrictions))


KNOWN = {"faber": defined("Pay"), "acme": defined("Newsletter")}


def test_an_attribute_has_the_words_of_its_issuer():
    assert label_asked(asked("faber"), "salary", KNOWN) == "Pay"


def test_who_asks_does_not_choose_words_for_the_card_of_another_issuer():
    for both in (asked("acme", "faber"), asked("faber", "acme")):
        assert label_asked(both, "salary", KNOWN) == "salary"
    assert label_asked(asked("acme", "elsewhere"), "salary", KNOWN) == "salary"


def test_issuers_who_agree_have_their_word():
    known = KNOWN | {"twin": defined("Pay")}
    assert label_asked(asked("faber", "twin"), "salary", known) == "Pay"
