from agency.mails.names import mailed_name


def test_a_name_is_mailed_as_it_is():
    for name in ("Faber College", "Straße 7, Inc.", "عيادة نور"):
        assert mailed_name(name) == name


def test_a_name_stays_one_line_that_reads_as_it_is_written():
    assert mailed_name("Faber\r\nBcc: all") == "Faber Bcc: all"
    assert mailed_name("Faber\u2028College\x00\x1b") == "Faber College"
    assert mailed_name("Faber \u202egelloC\u2066") == "Faber gelloC"


def test_no_mail_program_makes_a_link_of_a_name():
    for name in ("https://evil.example/a", "evil.example", "pay@evil.example"):
        mailed = mailed_name(name)
        assert mailed.replace("\u200b", "") == name
        for part in ("://", "l.e", "y@"):
            assert part not in mailed
