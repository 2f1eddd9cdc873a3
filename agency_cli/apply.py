"""`apply`: make an organization's definitions, policies, webhooks and kiosks of a file."""

import argparse
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from agency_cli.client import JSON, AgencyClient, RequestRefused

HELP = "make definitions, policies, webhooks and kiosks of a YAML file"
DESCRIPTION = """
Reads a YAML file with the lists definitions, policies, webhooks and kiosks, shows what
the organization does not have yet, and makes it after a question. What is there already
stays, so the same file may be applied again; nothing is deleted. A restriction of a
policy may say `definition: NAME VERSION`, a kiosk `policy: NAME VERSION`, in place of
an id.
"""
Row = dict[str, Any]


class FileError(Exception):
    """The file is not what it should be; the message says where and what to do."""


@dataclass(frozen=True)
class Kind:
    """One list of the file, and where its objects are in the API.

    key: the members by which an object is found again. fixed: the other members, with
    what the agency takes without them; they cannot be changed later. changeable: members
    that a PATCH changes; those that the file does not name stay as they are. read_as:
    what the API calls a member when it is read. secret: what is shown once; when_lost:
    what to do if it was not seen.
    """

    noun: str
    path: str
    id: str
    key: tuple[str, ...]
    fixed: Row = field(default_factory=dict)
    changeable: tuple[str, ...] = ()
    read_as: dict[str, str] = field(default_factory=dict)
    secret: str = ""
    when_lost: str = ""

    def name_of(self, row: Row) -> str:
        return " ".join(str(row[member]) for member in self.key)


NOTES = ("reference", "metadata")
KINDS = {
    "definitions": Kind(
        noun="definition",
        path="/definitions/credentials",
        id="definitionId",
        key=("name", "version", "tag"),
        fixed={"attributes": [], "supportRevocation": False, "claims": {}},
        changeable=NOTES,
        read_as={"supportRevocation": "supportsRevocation"},
    ),
    "policies": Kind(
        noun="policy",
        path="/verificationPolicies",
        id="policyId",
        key=("name", "version"),
        fixed={"attributes": [], "predicates": [], "revocationRequirement": None},
        changeable=NOTES,
    ),
    "webhooks": Kind(
        noun="webhook",
        path="/webhooks",
        id="id",
        key=("url",),
        changeable=("messageTypes", "retryUnconfirmed", "batch"),
        secret="secret",
        when_lost="rotate it, in the studio or by POST /webhooks/{id}/secret",
    ),
    "kiosks": Kind(
        noun="kiosk",
        path="/kiosks",
        id="kioskId",
        key=("name",),
        fixed={"policy": None, "seconds": 8, "shownItems": []},
        secret="url",
        when_lost="revoke the kiosk, in the studio or by DELETE, and apply again",
    ),
}
DEFAULTS = {"tag": "default"}  # of members of a key


@dataclass
class Step:
    """An object of the file, of the list `name`.

    found: the same at the agency, or None. changes: of it.
    """

    name: str
    wanted: Row
    found: Row | None
    changes: Row

    @property
    def kind(self) -> Kind:
        return KINDS[self.name]

    def describe(self) -> str:
        name = f"{self.kind.noun} {self.kind.name_of(self.wanted)}"
        if self.found is None:
            return f"+ {name}"
        if not self.changes:
            return f"= {name}"
        shown = [
            f"\n    {member}: {self.found.get(member)!r} -> {value!r}"
            for member, value in self.changes.items()
        ]
        return f"~ {name}{''.join(shown)}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="- for standard input")
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--diff", action="store_true", help="only show what would be done"
    )
    group.add_argument("--yes", action="store_true", help="do not ask")


def run_command(client: AgencyClient, given: argparse.Namespace) -> int:
    try:
        is_input = str(given.file) == "-"
        text = sys.stdin.read() if is_input else given.file.read_text("utf-8")
        agency = Agency(client, read_file(text))
        steps = agency.plan()
    except (FileError, OSError, UnicodeDecodeError) as error:
        print(f"{given.file}: {error}", file=sys.stderr)
        return 1
    for step in steps:
        print(step.describe())
    steps = [step for step in steps if step.found is None or step.changes]
    if not steps:
        print("Nothing to do.")
        return 0
    if given.diff:
        return 0
    if not given.yes and not has_agreed():
        print("Nothing was done.", file=sys.stderr)
        return 1
    for step in steps:
        agency.perform(step)
    print(f"Done: {len(steps)}.")
    return 0


def has_agreed() -> bool:
    if not sys.stdin.isatty():
        print("Nobody can be asked here: give --yes.", file=sys.stderr)
        return False
    return input("Do this? [y/N] ").strip().lower() in ("y", "yes")


def read_file(text: str) -> dict[str, list[Row]]:
    """The lists of the file, by their names."""
    try:
        content = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise FileError(f"it is not YAML: {error}") from None
    if not isinstance(content, dict) or not set(content) <= set(KINDS):
        raise FileError(f"give a mapping with the lists {', '.join(KINDS)}")
    lists: dict[str, list[Row]] = {}
    for name, kind in KINDS.items():
        rows = content.get(name) or []
        if not isinstance(rows, list):
            raise FileError(f"{name}: give a list")
        lists[name] = [
            read_row(kind, f"{name}[{n}]", row) for n, row in enumerate(rows)
        ]
        names = [kind.name_of(row) for row in lists[name]]
        if doubled := {one for one in names if names.count(one) > 1}:
            raise FileError(f"{name}: {min(doubled)} is there twice")
    return lists


def read_row(kind: Kind, place: str, row: Any) -> Row:
    if not isinstance(row, dict):
        raise FileError(f"{place}: give a mapping")
    known = (*kind.key, *kind.fixed, *kind.changeable)
    if unknown := [member for member in row if member not in known]:
        raise FileError(
            f"{place}: {unknown[0]} is unknown. Known are {', '.join(known)}"
        )
    row = {member: DEFAULTS[member] for member in kind.key if member in DEFAULTS} | row
    for member in kind.key:
        if not isinstance(row.get(member), str):
            raise FileError(f'{place}: give {member} as a text, in "quotes"')
    return row


class Agency:
    """What the organization has, read once, and what of the file is made meanwhile."""

    def __init__(self, client: AgencyClient, lists: dict[str, list[Row]]):
        self.client = client
        self.lists = lists
        self.rows: dict[str, list[Row]] = {}

    def rows_of(self, name: str) -> list[Row]:
        """Those at the agency, without twins: these have the names of others."""
        if name not in self.rows:
            rows = self.client.get_all(KINDS[name].path)
            self.rows[name] = [row for row in rows if "twinOf" not in row]
        return self.rows[name]

    def id_of(self, name: str, wanted: str) -> str | None:
        """The id of an object by its name and version; None if the file makes it later.

        A definition may be given with its tag, which several of them need.
        """
        kind = KINDS[name]
        known = {kind.name_of(row): row.get(kind.id) for row in self.lists[name]}
        known |= {kind.name_of(row): row[kind.id] for row in self.rows_of(name)}
        found = {
            full: object_id
            for full, object_id in known.items()
            if wanted == full
            or (kind.noun == "definition" and wanted == full.rpartition(" ")[0])
        }
        if not found:
            raise FileError(f"there is no {kind.noun} {wanted}, here or at the agency")
        if wanted in found:
            return found[wanted]
        if len(found) > 1:
            raise FileError(f"several {name} are called {wanted}: add the tag")
        [object_id] = found.values()
        return object_id

    def resolve(self, value: Any) -> Any:
        """The same with ids in place of names; None for the id of what is not made."""
        if isinstance(value, list):
            return [self.resolve(one) for one in value]
        if not isinstance(value, dict):
            return value
        found = {name: self.resolve(one) for name, one in value.items()}
        if "definition" in found:
            wanted = found.pop("definition")
            found["credentialDefinitionId"] = self.id_of("definitions", wanted)
        return found

    def body_of(self, kind: Kind, wanted: Row) -> Row:
        """What the API takes."""
        if kind.noun == "kiosk":
            body = dict(wanted)
            return body | {"policyId": self.id_of("policies", body.pop("policy"))}
        found: Row = self.resolve(wanted) if kind.noun == "policy" else wanted
        return found

    def plan(self) -> list[Step]:
        """What is to be done, in order. FileError for what cannot be changed."""
        return [
            self.plan_row(name, row)
            for name, rows in self.lists.items()
            for row in rows
        ]

    def plan_row(self, name: str, wanted: Row) -> Step:
        kind = KINDS[name]
        same = [
            row
            for row in self.rows_of(name)
            if kind.name_of(row) == kind.name_of(wanted)
        ]
        body = self.body_of(kind, wanted)
        if not same:
            return Step(name, wanted, None, {})
        # Names need not be unique: the one that is equal is meant.
        compared = [(fixed_difference(kind, body, row), row) for row in same]
        different, found = min(compared, key=lambda pair: bool(pair[0]))
        if different:
            raise FileError(
                f"the {kind.noun} {kind.name_of(wanted)} is there with another "
                f"{different}, which cannot be changed. Give this one another "
                f"{kind.key[1] if len(kind.key) > 1 else kind.key[0]}"
            )
        changes = {
            member: wanted[member]
            for member in kind.changeable
            if member in wanted and not is_same(wanted[member], found.get(member))
        }
        return Step(name, wanted, found, changes)

    def perform(self, step: Step) -> None:
        kind = step.kind
        if step.found is not None:
            path = f"{kind.path}/{quote(str(step.found[kind.id]), safe='')}"
            self.client.call("PATCH", path, step.changes)
            return
        shown = f"Made {kind.noun} {kind.name_of(step.wanted)}"
        try:
            made = self.client.post(kind.path, self.body_of(kind, step.wanted))
        except RequestRefused as error:
            if error.code != "already_created":
                raise
            # Its answer was lost, and what that showed is not shown again.
            print(f"{shown}, but its {kind.secret} was lost: {kind.when_lost}")
            return
        self.rows_of(step.name).append(made)
        if kind.secret:
            shown += f", {kind.secret} (shown once): {made[kind.secret]}"
        print(shown, flush=True)


def fixed_difference(kind: Kind, body: Row, found: Row) -> str:
    """The first member that cannot be changed and differs, or ""."""
    for member, default in kind.fixed.items():
        name = "policyId" if member == "policy" else member
        wanted = body.get(name, default)
        there = found.get(kind.read_as.get(name, name), default)
        if kind.noun == "definition" and name == "attributes":
            # Their order means nothing.
            wanted, there = sorted(wanted or []), sorted(there or [])
        if not is_same(wanted, there):
            return member
    return ""


def is_same(wanted: JSON, found: JSON) -> bool:
    """Whether the agency has what is wanted. It may add members with defaults."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        names = {*wanted, *(name for name, value in found.items() if value)}
        return all(is_same(wanted.get(name), found.get(name)) for name in names)
    if isinstance(wanted, list) and isinstance(found, list):
        return len(wanted) == len(found) and all(map(is_same, wanted, found))
    return bool(wanted == found) or (not wanted and not found)
