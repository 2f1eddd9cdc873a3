"""Judge the tests by mutations of lines that they run.

    python -m tests.measures mutations record FOLDER [arguments of pytest]
    python -m tests.measures mutations judge FOLDER [MUTATIONS]

`record` runs the fast tests and writes to FOLDER which of them run which lines. `judge`
changes one place of the source at a time, in a copy of the checkout, and runs the tests
of its line until one fails. It chooses the places with a fixed seed and writes them to
FOLDER/mutations.json. Another version of the source and its tests are judged by the
same places if MUTATIONS names that file: a place is found again by its text.
"""

import ast
import importlib.util
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import coverage

from agency.devtools.embedded import temporary_servers
from tests.measures.source import PACKAGES
from tests.support.paths import ROOT

SEED, CHOSEN = 35, 40
MOST_TESTS = 100  # of one line
TEST_SECONDS, RUN_SECONDS = 120, 900
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
# Tables of names and what only developers run: no behaviour of the product.
LEFT_OUT = ("agency/settings.py", "agency/devtools/")
LEFT_OUT_NAMES = ("admin.py", "apps.py", "urls.py")
NOT_COPIED = (".git", ".venv", "node_modules", "var", "__pycache__")
OTHER = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt,
    ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add,
}  # fmt: skip


class Mutation(NamedTuple):
    """A place, by the text of its line, and what is changed there."""

    path: str
    text: str
    occurrence: int  # among the lines of the file with that text
    change: str
    number: int  # among the same changes of the line


class Place(NamedTuple):
    line: int
    start: int  # in bytes, as all positions of `ast`
    end: int
    new: str

    def changed(self, source: bytes) -> bytes:
        return source[: self.start] + self.new.encode() + source[self.end :]


def places_in(path: str, source: bytes) -> dict[Mutation, Place]:
    lines = source.splitlines(keepends=True)
    starts = list(itertools.accumulate(map(len, lines), initial=0))
    texts = [line.decode().strip() for line in lines]
    counted: Counter[Mutation] = Counter()
    found = {}
    for node in changeable_nodes(ast.parse(source)):
        for change, new in changes_of(node):
            row = node.lineno - 1
            occurrence = texts[:row].count(texts[row])
            first = Mutation(path, texts[row], occurrence, change, 0)
            start = starts[row] + node.col_offset
            end = starts[node.end_lineno - 1] + node.end_col_offset
            place = Place(node.lineno, start, end, new)
            found[first._replace(number=counted[first])] = place
            counted[first] += 1
    return found


def changeable_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """All but annotations, decorators, logging, and f-strings, which lack positions."""
    match node:
        case ast.JoinedStr() | ast.Expr(ast.Call(ast.Attribute(ast.Name("logger")))):
            return
    yield node
    for field, value in ast.iter_fields(node):
        if field not in ("annotation", "returns", "decorator_list"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from changeable_nodes(child)


def changes_of(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Return the name and the text of each change of this node."""
    match node:
        case ast.Compare(left, [operator], right):
            yield replaced(operator, ast.Compare(left, [other(operator)], right))
        case ast.BoolOp(operator, values):
            yield replaced(operator, ast.BoolOp(other(operator), values))
        case ast.BinOp(left, ast.Add() | ast.Sub() as operator, right):
            yield replaced(operator, ast.BinOp(left, other(operator), right))
        case ast.UnaryOp(ast.Not(), operand):
            yield "Not removed", f"({ast.unparse(operand)})"
        case ast.Constant(bool() as value):
            yield f"{value} to {not value}", str(not value)
        case ast.Constant(int() as value):
            yield f"{value} to {value + 1}", f"({value + 1})"
        case ast.Return(ast.expr() as value) if ast.unparse(value) != "None":
            yield "None returned", "return None"
        case ast.Expr(ast.Call()):
            yield "Call removed", "pass"


def other(operator: ast.AST) -> ast.AST:
    return OTHER[type(operator)]()


def replaced(operator: ast.AST, node: ast.AST) -> tuple[str, str]:
    name, new = type(operator).__name__, OTHER[type(operator)].__name__
    return f"{name} to {new}", f"({ast.unparse(node)})"


def record(folder: Path, arguments: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    command = [*PYTEST, "-p", "tests.measures.contexts", "-m", "not slow", *arguments]
    subprocess.run(command, cwd=ROOT, env=os.environ | {"MUTATIONS": str(folder)})
    combined = coverage.Coverage(data_file=str(folder / "lines"), config_file=False)
    combined.combine([str(folder)])
    combined.save()


class Recorded:
    """What `record` found."""

    def __init__(self, folder: Path) -> None:
        self.seconds = json.loads((folder / "seconds.json").read_text())
        self.data = coverage.CoverageData(str(folder / "lines"))
        self.data.read()

    def tests_of(self, path: str) -> dict[int, list[str]]:
        """Return the passed tests of each line, the nearest and shortest ones first."""

        def rank(test: str) -> tuple[int, float, str]:
            near = os.path.commonprefix([path.split("/"), test.split("/")[1:]])
            return -len(near), self.seconds[test], test

        found = {}
        for line, tests in self.data.contexts_by_lineno(path).items():
            if passed := self.seconds.keys() & tests:
                found[line] = sorted(passed, key=rank)
        return found

    def find(self, mutation: Mutation) -> tuple[Place | None, list[str]]:
        """Return where the mutation is in this source, and the tests of its line."""
        file = ROOT / mutation.path
        places = places_in(mutation.path, file.read_bytes() if file.exists() else b"")
        place = places.get(mutation)
        lines = self.tests_of(mutation.path)
        return place, lines.get(place.line, []) if place else []

    def choose(self) -> list[Mutation]:
        """Return mutations of covered lines, at most one of each line."""
        found = defaultdict(list)
        for path in product_files():
            lines = self.tests_of(path).keys()
            for mutation, place in places_in(path, (ROOT / path).read_bytes()).items():
                if place.line in lines:
                    found[path, place.line].append(mutation)
        pick = random.Random(SEED)
        return [pick.choice(found[line]) for line in pick.sample(sorted(found), CHOSEN)]


def product_files() -> list[str]:
    paths = [
        path.relative_to(ROOT)
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if path.name not in LEFT_OUT_NAMES and "migrations" not in path.parts
    ]
    return sorted(str(path) for path in paths if not str(path).startswith(LEFT_OUT))


def judge(folder: Path, mutations: Path | None = None) -> None:
    recorded = Recorded(folder)
    if mutations:
        chosen = [Mutation(*row) for row in json.loads(mutations.read_text())]
    else:
        chosen = recorded.choose()
        (folder / "mutations.json").write_text(json.dumps(chosen, indent=1))
    survivors = []
    print("| place | change | tests | caught by |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as copy, temporary_servers() as environment:
        checkout = Checkout(Path(copy, "checkout"), environment)
        for mutation in chosen:
            place, tests = recorded.find(mutation)
            some = tests[:MOST_TESTS]
            caught_by = checkout.catch(mutation.path, place, some) if place else None
            where = f"{mutation.path}:{place.line if place else '?'} `{mutation.text}`"
            if not caught_by:
                survivors.append(f"{where}, {mutation.change}")
            number = f"{len(some)} of {len(tests)}"
            row = (where, mutation.change, number, caught_by or "**none**")
            print(f"| {' | '.join(row)} |", flush=True)
    caught = len(chosen) - len(survivors)
    print(f"\n{caught} of {len(chosen)} caught; survivors:", *survivors, sep="\n- ")


class Checkout:
    """A copy of the checkout, with one migrated database for all runs of tests."""

    def __init__(self, root: Path, environment: dict[str, str]) -> None:
        shutil.copytree(ROOT, root, ignore=shutil.ignore_patterns(*NOT_COPIED))
        (root / ".venv").symlink_to(ROOT / ".venv")
        self.root = root
        self.environment = os.environ | environment
        self.database = "--create-db"

    def catch(self, path: str, place: Place, tests: list[str]) -> str | None:
        """Return the test that fails with the mutation, and only with it."""
        source = (self.root / path).read_bytes()
        while tests:
            self.write(path, place.changed(source))
            failed = self.first_failure(tests)
            self.write(path, source)
            if not failed or not self.first_failure([failed]):
                return failed
            self.database = "--create-db"
            tests = [test for test in tests if test != failed]
        return None

    def write(self, path: str, source: bytes) -> None:
        """Remove the compiled file too: its time and its size may be those of ours."""
        (self.root / path).write_bytes(source)
        compiled = importlib.util.cache_from_source(str(self.root / path))
        Path(compiled).unlink(missing_ok=True)

    def first_failure(self, tests: list[str]) -> str | None:
        """Return the test that fails: the first one if the run breaks or hangs.

        A killed run leaves rows in the database, and the next one makes another.
        """
        options = ["-x", "-rfE", "--tb=no", f"--timeout={TEST_SECONDS}", self.database]
        command = [*PYTEST, *options, *tests]
        try:
            run = subprocess.run(
                command, cwd=self.root, env=self.environment, timeout=RUN_SECONDS,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            self.database = "--create-db"
            return tests[0]
        self.database = "--reuse-db"
        if run.returncode == 0:
            return None
        summary = re.findall("^(?:FAILED|ERROR) .*", run.stdout, re.MULTILINE)
        named = [test for test in tests if any(f" {test}" in line for line in summary)]
        return max(named, key=len, default=tests[0])


def main(arguments: list[str]) -> None:
    match arguments:
        case ["record", folder, *rest]:
            record(Path(folder).resolve(), rest)
        case ["judge", folder, *mutations]:
            judge(Path(folder), *map(Path, mutations))
        case _:
            sys.exit(__doc__)
