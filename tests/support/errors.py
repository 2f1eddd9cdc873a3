"""Assertions about errors of the API."""

from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from django.http import HttpResponse

from tests.support.people import ApiError

Refused = TypeVar("Refused", bound=Exception)


def error_of(call: Callable[..., Any], /, *arguments: Any, **options: Any) -> ApiError:
    """Return the error that a client's call raises. Fails if the call succeeds."""
    with pytest.raises(ApiError) as raised:
        call(*arguments, **options)
    return raised.value


def refusal(kind: type[Refused], call: Callable[..., Any], *given: Any) -> Refused:
    """Return the error of this kind that a function raises."""
    with pytest.raises(kind) as raised:
        call(*given)
    return raised.value


def assert_error(answer: HttpResponse | ApiError, status: int, code: str) -> None:
    """Assert the status and stable code of a response, or of a client's error.

    The response may be of Django's test client or of `requests`.
    """
    if isinstance(answer, ApiError):
        assert (answer.status, answer.code) == (status, code), answer
    else:
        body = answer.json()
        assert (answer.status_code, body["code"]) == (status, code), body
