"""The client of the command line, with a server that breaks off in the middle of a response."""

import pytest

from agency_cli.__main__ import main
from agency_cli.client import AgencyClient, Unreachable
from tests.support.http_servers import http_server

LINK = '<http://agency.example/events?after=7>; rel="next"'


@pytest.fixture
def answers():
    """Return a client of a server that sends `body`, and promises so many bytes."""
    sent = {}

    def respond(call):
        call.answer(200, sent["body"], Link=LINK, Content_Length=sent["promised"])

    with http_server(respond) as server:

        def answer(body, promised=None):
            sent.update(body=body, promised=str(promised or len(body)))
            return AgencyClient(server.url, "a", "b")

        yield answer


def test_a_whole_response_is_read(answers):
    assert answers(b'[{"tenantId": "4711"}]').tenant_id() == "4711"
    assert answers(b"[]").read_page("5") == ([], "7")


@pytest.mark.parametrize("body, promised", [(b'[{"ten', 900), (b"<html>", None)])
def test_a_response_that_breaks_off_is_asked_for_again(answers, body, promised):
    with pytest.raises(Unreachable):
        answers(body, promised).tenant_id()
    with pytest.raises(Unreachable):
        answers(body, promised).read_page("5")


def test_all_pages_are_read_at_the_given_address():
    def respond(call):
        pages = {"/kiosks?limit=100": b"[1]", "/kiosks?cursor=7": b"[2]"}
        link = '<https://elsewhere.example/kiosks?cursor=7>; rel="next"'
        more = {"Link": link} if call.path.endswith("100") else {}
        call.answer(200, pages[call.path], **more)

    with http_server(respond) as server:
        assert AgencyClient(server.url, "a", "b").get_all("/kiosks") == [1, 2]


@pytest.mark.parametrize("token", ["", "…", "agt_a\nagt_b"])
def test_what_cannot_be_a_key_is_said_before_any_call(token, monkeypatch, capsys):
    monkeypatch.setenv("ACCESS_TOKEN", token)
    monkeypatch.setenv("SUBSCRIPTION_KEY", "ags_a")
    assert main(["trigger", "credential_issued", "--url", "http://127.0.0.1:1"]) == 1
    said = "Set ACCESS_TOKEN in the environment, to a key as shown.\n"
    assert capsys.readouterr().err == said
