"""A pytest plugin that notes which errors the API answered in a run of tests.

RECORDED_ERRORS names a folder; without it nothing is noted. Each process writes a file
of lines `[operation, status, code, body]` there, which `make errors` compares with the
OpenAPI document.
"""

import json
import os
from pathlib import Path

from django.core.handlers.base import BaseHandler
from django.urls import Resolver404, resolve

FOLDER = "RECORDED_ERRORS"
# Where chance decides, or how fast another agent is.
BY_CHANCE = ("test_fuzzed", "tests/interop/")
# The shortest body for each operation, status and code.
seen: dict[tuple[str, int, str], str] = {}


def note_error(request, response, folder):
    """Note the error of an operation. What no operation answers is left out.

    So is what chance brings (BY_CHANCE): it differs from run to run. It is written at
    once, so that nothing is lost if the process is killed.
    """
    test = os.environ.get("PYTEST_CURRENT_TEST", "")
    if any(part in test for part in BY_CHANCE):
        return
    code = getattr(response, "error_code", None)
    if not code or not (operation := operation_of(request)):
        return
    found, body = (operation, response.status_code, code), response.content.decode()
    if found in seen and len(seen[found]) <= len(body):
        return
    seen[found] = body
    with (folder / f"{os.getpid()}.jsonl").open("a") as file:
        file.write(json.dumps([*found, json.loads(body)]) + "\n")


def operation_of(request):
    """The operation that a request calls, also if middleware refuses it."""
    try:
        match = request.resolver_match or resolve(request.path_info)
    except Resolver404:
        return None
    name = getattr(match.func, "actions", {}).get(request.method.lower())
    handler = getattr(getattr(match.func, "cls", None), name or "", None)
    return getattr(getattr(handler, "operation", None), "operation_id", None)


def pytest_configure():
    if FOLDER not in os.environ:
        return
    folder = Path(os.environ[FOLDER]).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    get_response = BaseHandler.get_response

    def get_noted_response(self, request):
        response = get_response(self, request)
        note_error(request, response, folder)
        return response

    BaseHandler.get_response = get_noted_response
