"""What an organization may write in its mails, and what the headers become."""

import re
from datetime import UTC, datetime
from email import message_from_bytes
from email.policy import default

import pytest
from django.utils import translation

from agency.mails import offers
from core.errors import Invalid
from tenants.branding import LANGUAGES
from tests.agency.mails.people import club_of

LINK = "https://agency.example/i/abc"


@pytest.mark.parametrize(
    "text",
    [
        "Look at https://evil.example/x",
        "Look at evil.example",
        "Look at evil。example",
        "www.evil",
        "Write to eve@evil",
        "mailto:eve",
        "10.0.0.1",
        "<b>Win</b>",
        "Dear {name.__class__}",
        "Dear {address}",
        "Dear {",
        "tab\tbell\x07",
        "turned \u202e round",
        "zero\u200bwidth",
        "x" * 1001,
        "\n".join("x" * 21),
        "bit.ly/abc",
        "Ｗｗｗ．evil．com",
        "evil\u200d.com",
    ],
)
def test_it_refuses_links_addresses_html_and_hidden_signs(text):
    with pytest.raises(Invalid) as caught:
        offers.clean_text(text)
    assert caught.value.code == "invalid_mail_text" and caught.value.errors["text"]


@pytest.mark.parametrize(
    "text",
    [
        "Dear {name},\r\n\r\nyour {card} is here. Come on 17.05.2026 at 18.30, z.B. early!",
        "Liebe {name}, d.h. heute. 3 Plätze; 50 % 👩\u200d💻",
        "مرحبا {name}",
        "",
    ],
)
def test_it_takes_what_people_write(text):
    assert offers.clean_text(text) == text.replace("\r\n", "\n")


def built(name="Faber", reply_to="office@club.example", subject="Card"):
    return offers.build_message(
        offers.OfferMail(subject, "Hello"),
        organization=name,
        to="ann@club.example",
        reply_to=reply_to,
        language="en",
        message_id="x",
        moment=datetime(2026, 1, 2, tzinfo=UTC),
        unsubscribe="https://agency.example/unsubscribe/" + "ab" * 50,
    )


@pytest.mark.parametrize(
    "name",
    [
        "Faber\r\nBcc: all@evil.example",
        'Faber" <eve@evil.example>, "x',
        "Fäbér ✓ " * 40,
        "Faber\u2028Bcc: x@evil.example",
        "=?utf-8?q?Faber=0d=0aBcc:x?=",
    ],
)
def test_a_name_adds_no_header_and_no_sender(name):
    text = built(name).as_bytes().decode("ascii")
    head = text.partition("\r\n\r\n")[0]
    names = re.findall(r"^([\w-]+):", head, re.M)
    assert sorted(names) == sorted(set(names)) and "Bcc" not in names


@pytest.mark.parametrize(
    "hidden",
    ["evil=2Eexample", "=FF", "a=0D=0ABcc=3A_x", "a=22=2C_=3Cceo=40bank.example=3E"],
)
def test_an_encoded_word_in_a_name_stays_as_it_is_written(hidden):
    name = f"=?utf-8?q?{hidden}?="
    shown = offers.short_name(name)
    message = message_from_bytes(built(name, subject=shown).as_bytes(), policy=default)
    assert message["Subject"] == shown
    [sender] = message["From"].addresses
    assert sender.addr_spec == offers.sender_address()
    assert sender.display_name.replace(" ", "") == f"{shown}(Agency)"


@pytest.mark.parametrize("text", ["evil{name}", "evil.{card}", "{name}{card}"])
def test_what_is_filled_in_makes_no_link_of_a_text(text):
    assert offers.clean_text(text) == text
    for values in (
        {"name": ".example", "card": "example"},
        {"name": "w.", "card": "ab"},
    ):
        shown = {name: offers.short_name(value) for name, value in values.items()}
        assert not offers.LINK.search(offers.as_seen(offers.fill(text, shown)))


def test_a_header_with_a_line_end_is_refused():
    for options in ({"subject": "a\r\nBcc: x"}, {"reply_to": "a@b.c\r\nBcc: x@y.z"}):
        with pytest.raises(ValueError):
            built(**options).as_bytes()


def test_mail_programs_find_the_address_to_unsubscribe():
    text = built().as_bytes().decode()
    url = "https://agency.example/unsubscribe/" + "ab" * 50
    assert f"\r\nList-Unsubscribe: <{url}>\r\n" in text


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("language", LANGUAGES)
def test_it_is_whole_in_each_language(faber, language):
    bulk = club_of(faber, "Ann")
    for is_reminder in (False, True):
        mail = offers.write_mail(
            bulk.definition,
            text="",
            name="{card} evil.example",
            link=LINK,
            language=language,
            is_reminder=is_reminder,
        )
        assert mail.body.count("http") == 1 and LINK in mail.body
        assert "evil.example" not in mail.body  # no link is made of it
        assert "{organization}" not in mail.subject + mail.body
        assert faber.tenant.name in mail.subject
        if language != "en":
            assert "offers you" not in mail.subject + mail.body
    assert translation.get_language() == "en"
