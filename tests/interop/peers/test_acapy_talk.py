"""Messages on a connection with ACA-Py other than credentials and proofs."""

from tests.support.processes import eventually


def test_a_ping_of_acapy_is_answered(peer, link):
    thread = peer.post(f"/connections/{link[1]}/send-ping", {"comment": "there?"})[
        "thread_id"
    ]
    peer.webhooks.hears("ping", thread_id=thread, state="response_received")


def test_a_text_of_acapy_is_shown(faber, peer, link):
    ours, theirs = link
    peer.post(f"/connections/{theirs}/send-message", {"content": "Grüße, 日本 🎓"})
    path = f"/messages/connection/{ours}"
    texts = eventually(
        lambda: [one for one in faber.get(path) if "日本" in one["text"]]
    )
    assert [(one["text"], one["direction"]) for one in texts] == [
        ("Grüße, 日本 🎓", "Incoming")
    ]


def test_acapy_gets_our_text(faber, peer, link):
    ours, theirs = link
    text = f"Zurück an {ours}: ñandú"
    faber.post("/messages", {"connectionId": ours, "text": text})
    assert peer.webhooks.hears("basicmessages", content=text)["connection_id"] == theirs


def test_acapy_learns_which_protocols_are_spoken_here(peer, link):
    query = {"connection_id": link[1], "query_protocol": "*"}
    asked = peer.get("/discover-features-2.0/queries", **query)
    named = {one["id"] for one in asked["disclosures"]["disclosures"]}
    assert named >= {
        "https://didcomm.org/issue-credential/2.0",
        "https://didcomm.org/connections/1.0",
    }


def test_acapy_learns_it_also_by_the_first_version_of_that_question(peer, link):
    asked = peer.get("/discover-features/query", connection_id=link[1], query="*")
    named = {one["pid"] for one in asked["disclose"]["protocols"]}
    assert {"https://didcomm.org/issue-credential/1.0"} <= named
