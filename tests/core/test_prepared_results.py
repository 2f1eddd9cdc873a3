"""Results that are computed before the locks of a transaction."""

from contextlib import nullcontext

import pytest

from core.work import prepared_results, transactions
from core.work.prepared_results import preparable, preparing

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def calls():
    return []


@pytest.fixture
def double(calls):
    @preparable
    def function(given):
        calls.append(given)
        return {"doubled": given["number"] * 2}

    return function


def test_the_same_arguments_get_the_prepared_result_and_others_are_computed(
    double, calls
):
    @preparable
    def other(given):
        return "other"

    with transactions.atomic():
        with preparing():
            first = double({"number": 2})
        assert double({"number": 2}) is first
        assert other({"number": 2}) == "other"
        for _ in range(2):
            assert double({"number": 3}) == {"doubled": 6}
        assert calls == [{"number": 2}, {"number": 3}, {"number": 3}]


@pytest.mark.parametrize("fails", [False, True])
def test_nothing_outlives_the_transaction(double, calls, fails):
    expected = pytest.raises(ZeroDivisionError) if fails else nullcontext()
    with expected, transactions.atomic():
        with preparing():
            double({"number": 2})
        assert not fails or 1 / 0
    assert prepared_results._local.results == []
    double({"number": 2})
    assert len(calls) == 2


def test_a_result_stays_after_a_savepoint_is_rolled_back(double, calls):
    """It depends on its arguments only."""
    with transactions.atomic():
        with preparing():
            double({"number": 2})
        with pytest.raises(ZeroDivisionError), transactions.atomic():
            assert 1 / 0
        double({"number": 2})
    assert len(calls) == 1


def test_a_failure_is_not_kept(calls):
    @preparable
    def fails(given):
        calls.append(given)
        raise ValueError

    with transactions.atomic():
        with pytest.raises(ValueError), preparing():
            fails(1)
        with pytest.raises(ValueError):
            fails(1)
    assert calls == [1, 1]
