"""Errors of the API: the error that a client's call ends with, and what an error answers."""

from collections.abc import Callable
from typing import Any

import pytest
from django.http import HttpResponse

from tests.support.people import ApiError


def error_of(call: Callable[..., Any], /, *arguments: Any, **options: Any) -> ApiError:
    """The error that a client's call ends with. The test fails if the call works."""
    with pytest.raises(ApiError) as raised:
        call(*arguments, **options)
    return raised.value


def assert_error(answer: HttpResponse | ApiError, status: int, code: str) -> None:
    """The response, or the error of a client's call, has this status and this stable code.

    Responses of Django's test client and of `requests` have the same members here.
    """
    if isinstance(answer, ApiError):
        assert (answer.status, answer.code) == (status, code), answer
    else:
        body = answer.json()
        assert (answer.status_code, body["code"]) == (status, code), body
