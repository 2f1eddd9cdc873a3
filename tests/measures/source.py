"""Measures of the source's structure and density, with the standard library only.

Counted is what the product consists of: all packages, without migrations and tests.
"""

import ast
import os
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from tests.support.paths import ROOT

# From the lowest to the highest: a module imports from its own layer and those to its
# left. The longest prefix of a module's name counts.
LAYERS = (
    "agency_cli", "core", "core.text", "core.telemetry", "core.database", "core.states",
    "core.work", "core.valkey", "core.net", "tenants", "core.api", "wallets",
    "webhooks", "connections", "credentials", "verifications", "sandbox",
    "tenants.lifecycle", "agency.server", "agency.words", "agency.holders.links",
    "agency.holders.wallet", "agency.ops", "agency.mails", "agency.studio",
    "agency.support", "agency.devtools", "agency",
)  # fmt: skip
# Found by Django or by the routes of the root; no other module imports these.
WIRING = ("apps", "urls")
PACKAGES = sorted({name.partition(".")[0] for name in LAYERS})
LONG_FILE = 350
# Methods that change the list or dict of another module.
GROWS = ("append", "add", "update", "setdefault")
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


class Module(NamedTuple):
    name: str
    text: str
    tree: ast.Module
    nodes: list[ast.AST]  # of the tree: to walk it takes longer than to look at all

    @classmethod
    def parse(cls, name: str, text: str) -> "Module":
        tree = ast.parse(text)
        return cls(name, text, tree, list(ast.walk(tree)))

    def lines(self) -> list[str]:
        """Those that are not blank."""
        return [line for line in self.text.splitlines() if line.strip()]

    def functions(self) -> list[str]:
        """The names of all functions and methods, nested ones too."""
        return [node.name for node in self.nodes if isinstance(node, FUNCTIONS)]


@cache
def read_modules() -> dict[str, Module]:
    paths = [
        path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))
    ]
    modules = {}
    for path in paths:
        parts = path.relative_to(ROOT).with_suffix("").parts
        if "migrations" not in parts:
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            modules[name] = Module.parse(name, path.read_text())
    return modules


def names_imported(module: Module) -> Iterator[str]:
    """The dotted names of all imports, also of those inside functions."""
    for node in module.nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imports_of(module: Module, modules: dict[str, Module]) -> Iterator[str]:
    """The modules of ours that it imports."""
    for name in names_imported(module):
        found = name if name in modules else name.rpartition(".")[0]
        if found in modules and found != module.name:
            yield found


def is_below(name: str, *packages: str) -> bool:
    """Whether it is one of these modules or packages, or inside of one."""
    return f"{name}.".startswith(tuple(f"{package}." for package in packages))


def import_graph(modules: dict[str, Module]) -> dict[str, set[str]]:
    return {name: set(imports_of(module, modules)) for name, module in modules.items()}


def cycles(graph: dict[str, set[str]]) -> list[set[str]]:
    """The sets of modules that all reach each other, the largest first."""
    reached = {name: reachable(name, graph) for name in graph}
    found: list[set[str]] = []
    for name in graph:
        circle = {other for other in reached[name] if name in reached[other]} | {name}
        if len(circle) > 1 and circle not in found:
            found.append(circle)
    return sorted(found, key=len, reverse=True)


def reachable(start: str, graph: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for name in graph[waiting.pop()] - seen:
            seen.add(name)
            waiting.append(name)
    return seen


def layer_of(module: str) -> int:
    """The number of the module's layer; wiring stands to the right of all layers."""
    if module.rpartition(".")[2] in WIRING:
        return len(LAYERS)
    return own_layer(module)


def own_layer(module: str) -> int:
    """The number of the layer in whose folder it lies."""
    return max(
        (number for number, name in enumerate(LAYERS) if is_below(module, name)),
        key=lambda number: len(LAYERS[number]),
    )


def upward_imports(graph: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Each import of a module whose layer stands to the right."""
    pairs = [(name, other) for name, others in graph.items() for other in others]
    return sorted(pair for pair in pairs if layer_of(pair[1]) > layer_of(pair[0]))


def two_way_pairs(graph: dict[str, set[str]]) -> set[tuple[str, str]]:
    """The rooms that import each other, in both directions.

    Rooms are the layers and, inside each, its folders and modules at every depth: of a
    module that imports another, those of both names below what the names have in common.
    A layer inside another one (`tenants.lifecycle`) is no part of it.
    """
    arrows = {
        rooms
        for name, others in graph.items()
        for other in others
        if (rooms := rooms_between(name, other))
    }
    return {(one, other) for one, other in arrows if one < other} & {
        (other, one) for one, other in arrows
    }


def rooms_between(name: str, other: str) -> tuple[str, str] | None:
    """The two rooms of an import. None if one module is the package of the other."""
    layers = tuple(LAYERS[own_layer(module)] for module in (name, other))
    if layers[0] != layers[1]:
        return layers[0], layers[1]
    parts = [module.split(".") for module in (name, other)]
    common = len(os.path.commonprefix(parts))
    if common == min(map(len, parts)):
        return None
    one, two = (".".join(part[: common + 1]) for part in parts)
    return one, two


def thread_locals(module: Module) -> int:
    """How many of its names hold a value for each thread or context."""
    return sum(
        isinstance(node, ast.Name | ast.Attribute)
        and getattr(node, "id", getattr(node, "attr", "")) in ("local", "ContextVar")
        and isinstance(node.ctx, ast.Load)
        for call in module.nodes
        if isinstance(call, ast.Call | ast.ClassDef)
        for node in (call.bases if isinstance(call, ast.ClassDef) else [call.func])
    )


def late_bound(module: Module, modules: dict[str, Module]) -> Iterator[str]:
    """The attributes of other modules of ours that it assigns or extends."""
    imported = {name.rpartition(".")[2]: name for name in imports_of(module, modules)}
    for node in module.nodes:
        # A variable hides a module of its name.
        if isinstance(node, ast.arg):
            imported.pop(node.arg, None)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            imported.pop(node.id, None)
    for node in module.nodes:
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            targets = [node.func.value] if node.func.attr in GROWS else []
        for target in targets:
            if not isinstance(target, ast.Attribute):
                continue
            owner = isinstance(target.value, ast.Name) and imported.get(target.value.id)
            if owner:
                yield f"{owner}.{target.attr}"


def untyped_words(module: Module) -> int:
    """How often an annotation says Any, object or dict without types; and casts."""
    number = 0
    for node in module.nodes:
        if isinstance(node, ast.Call):
            number += isinstance(node.func, ast.Name) and node.func.id == "cast"
        for place in ("annotation", "returns"):
            if annotation := getattr(node, place, None):
                inner = list(ast.walk(annotation))
                with_types = {
                    id(one.value) for one in inner if isinstance(one, ast.Subscript)
                }
                number += sum(
                    isinstance(one, ast.Name)
                    and one.id in ("Any", "object", "dict")
                    and id(one) not in with_types
                    for one in inner
                )
    return number


def unchecked_modules() -> list[str]:
    """Those whose errors mypy ignores, by pyproject.toml."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
    return [
        module
        for override in settings.get("overrides", [])
        if override.get("ignore_errors")
        for module in override["module"]
    ]


def report() -> str:
    modules = read_modules()
    graph = import_graph(modules)
    lines = [line for module in modules.values() for line in module.lines()]
    functions = [name for module in modules.values() for name in module.functions()]
    lengths = [len(module.text.splitlines()) for module in modules.values()]
    circles = cycles(graph)
    bound = {name for one in modules.values() for name in late_bound(one, modules)}
    rows = {
        "modules, lines": f"{len(modules)}, {sum(lengths):,}",
        "lines that are not blank": f"{len(lines):,}",
        "module cycles": f"{len(circles)}, with {sum(map(len, circles))} modules",
        "upward imports": str(len(upward_imports(graph))),
        "pairs of rooms both ways": str(len(two_way_pairs(graph))),
        "largest room of the source": largest_room(modules),
        "thread-locals": str(sum(map(thread_locals, modules.values()))),
        "late-bound globals": str(len(bound)),
        "Any, object, cast, bare dict": f"{sum(map(untyped_words, modules.values())):,}",
        "modules that mypy leaves out": str(len(unchecked_modules())),
        "files under 50 lines, over 350": (
            f"{sum(length < 50 for length in lengths)}, "
            f"{sum(length > LONG_FILE for length in lengths)}"
        ),
        "functions per 1,000 lines": f"{1000 * len(functions) / len(lines):.0f}",
    }
    return "\n".join(f"{name:36} {figure}" for name, figure in rows.items())


def largest_room(modules: dict[str, Module]) -> str:
    """The layer with most lines, and its share of them."""
    lines = Counter[str]()
    for name, module in modules.items():
        lines[LAYERS[own_layer(name)]] += len(module.lines())
    [(room, number)] = lines.most_common(1)
    return f"{room}, {percent(number, lines.total())}"


def percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %"
