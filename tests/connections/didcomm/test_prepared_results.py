"""Results that are computed before the locks of a transaction."""

import pytest

from connections.didcomm.message import PreparedResults


def test_the_same_arguments_get_the_known_result_and_others_are_computed():
    calls = []

    def double(given):
        calls.append(given)
        return {"doubled": given["number"] * 2}

    prepared = PreparedResults()
    first = prepared.call(double, {"number": 2})
    assert prepared.call(double, {"number": 2}) is first
    assert prepared.call(dict, {"number": 2}) == {"number": 2}
    assert prepared.call(double, {"number": 3}) == {"doubled": 6}
    assert calls == [{"number": 2}, {"number": 3}]
    PreparedResults().call(double, {"number": 2})
    assert len(calls) == 3, "others know nothing of it"


def test_a_failure_is_not_kept():
    prepared = PreparedResults()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            prepared.call(divmod, 1, 0)
    assert prepared.call(divmod, 3, 2) == (1, 1)
