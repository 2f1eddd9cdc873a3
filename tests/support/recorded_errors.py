"""A pytest plugin that notes which errors the API answered in a run of tests.

RECORDED_ERRORS names a folder; without it nothing is noted. Each process writes a file
of lines `[operation, status, code, body]` there, which `python -m tests.measures
errors` compares with the OpenAPI document.
"""

import json
import os
from pathlib import Path

import pytest
from django.core.handlers.base import BaseHandler
from django.urls import Resolver404, resolve

FOLDER = "RECORDED_ERRORS"
# The shortest body for each operation, status and code.
seen: dict[tuple[str, int, str], str] = {}


def note_error(request, response):
    """Note the error of an operation. What no operation answers is left out."""
    code = getattr(response, "error_code", None)
    if code and (operation := operation_of(request)):
        found = (operation, response.status_code, code)
        body = response.content.decode()
        seen[found] = min(seen.get(found, body), body, key=len)


def operation_of(request):
    """The operation that a request calls, also if middleware refuses it."""
    try:
        match = request.resolver_match or resolve(request.path_info)
    except Resolver404:
        return None
    name = getattr(match.func, "actions", {}).get(request.method.lower())
    handler = getattr(getattr(match.func, "cls", None), name or "", None)
    return getattr(handler, "operation_id", None)


def pytest_configure():
    if FOLDER not in os.environ:
        return
    get_response = BaseHandler.get_response

    def get_noted_response(self, request):
        response = get_response(self, request)
        note_error(request, response)
        return response

    BaseHandler.get_response = get_noted_response


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish():
    if seen and (folder := os.environ.get(FOLDER)):
        Path(folder).mkdir(parents=True, exist_ok=True)
        lines = [json.dumps([*found, json.loads(seen[found])]) for found in seen]
        Path(folder, f"{os.getpid()}.jsonl").write_text("\n".join(lines) + "\n")
