"""Shares: how much work may be done at the same time for one key."""

from core.work.shares import Shares

FABER = {("tenant", "Faber"): 2, ("all", None): 3}
ACME = {("tenant", "Acme"): 2, ("all", None): 3}


def test_work_needs_room_within_all_of_its_limits():
    shares = Shares()
    for limits in (FABER, FABER):
        assert shares.have_room(limits)
        shares.take(limits)
    assert not shares.have_room(FABER) and shares.have_room(ACME)
    assert (shares.full("tenant"), shares.full("all")) == (["Faber"], [])
    shares.take(ACME)
    assert not shares.have_room(ACME) and shares.full("all") == [None]


def test_what_is_given_back_has_room_again_and_is_forgotten():
    shares = Shares()
    shares.take(FABER), shares.take(FABER)
    shares.give_back(FABER)
    assert shares.have_room(FABER) and shares.full("tenant") == []
    shares.give_back(FABER)
    assert not shares._taken and not shares._limits
