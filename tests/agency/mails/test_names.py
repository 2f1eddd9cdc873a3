import pytest

from agency.mails.names import mailed_name


@pytest.mark.parametrize("name", ["Faber College", "Straße 7, Inc.", "عيادة نور"])
def test_a_name_is_mailed_as_it_is(name):
    assert mailed_name(name) == name


@pytest.mark.parametrize("name, mailed", [
    ("Faber\r\nBcc: all", "Faber Bcc: all"),
    ("Faber\u2028College\x00\x1b", "Faber College"),
    ("Faber \u202egelloC\u2066", "Faber gelloC"),
])  # fmt: skip
def test_a_name_stays_one_line_that_reads_as_it_is_written(name, mailed):
    assert mailed_name(name) == mailed


@pytest.mark.parametrize(
    "name", ["https://evil.example/a", "evil.example", "pay@evil.example"]
)
def test_no_mail_program_makes_a_link_of_a_name(name):
    mailed = mailed_name(name)
    assert mailed.replace("\u200b", "") == name
    for part in ("://", "l.e", "y@"):
        assert part not in mailed
