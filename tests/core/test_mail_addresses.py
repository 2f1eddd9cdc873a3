import pytest

from core.text.mail_addresses import clean_address, find_address


def test_it_takes_addresses_and_writes_domains_in_ascii():
    assert clean_address(" Ann.O'Neil+a@club.example ") == "Ann.O'Neil+a@club.example"
    assert clean_address("ann@bücher.example") == "ann@xn--bcher-kva.example"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ann",
        "ann@club.example, bo@club.example",
        "ann@club.example\r\nBcc: bo@club.example",
        "Ann <ann@club.example>",
        '"ann"@club.example',
        "änn@club.example",
        "root@localhost",
        "root@[127.0.0.1]",
        "root@127.0.0.1",
        "a" * 250 + "@club.example",
        "ann@" + "ü" * 100_000,
    ],
)
def test_it_refuses_what_is_none_or_of_the_server_itself(text):
    assert not find_address(text)
