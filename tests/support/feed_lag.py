"""How far the feed of an organization is behind while something works for others."""

import time

LAG_SECONDS = 1.0
# Of a busy machine.
GRACE_SECONDS = 1.0


def read_feed_during(is_running, reader, count_rows):
    """Let the reader make events while something runs. Return count_rows() at each.

    Each event must be in the feed within LAG_SECONDS after its call; prints the longest
    time.
    """
    reader.invites()
    cursor = reader.get("/events")[-1]["cursor"]
    seconds, counted, started = [], [], time.monotonic()
    while is_running():
        made = reader.invites()["connectionId"]
        began, found = time.monotonic(), []
        while not found:
            found = reader.get("/events", after=cursor)
        seconds.append(time.monotonic() - began)
        assert [one["body"]["object_id"] for one in found] == [made]
        cursor = found[-1]["cursor"]
        counted.append(count_rows())
    print(
        f"{len(seconds):,} events of others in {time.monotonic() - started:.0f} s: "
        f"after {max(seconds):.2f} s at most"
    )
    assert max(seconds) < LAG_SECONDS + GRACE_SECONDS
    return counted
