import pytest

from tests.support.people import ApiError, Provider


@pytest.fixture
def provider(faber):
    return Provider(faber)


@pytest.fixture
def refused():
    """Calls, and answers the error that must come."""

    def refused(call, *args, **kwargs):
        with pytest.raises(ApiError) as raised:
            call(*args, **kwargs)
        return raised.value

    return refused
