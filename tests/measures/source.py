"""Measures of the source's structure and density, with the standard library only.

Counted is what the product consists of: all packages, without migrations and tests.
"""

import ast
import io
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from tests.support.paths import ROOT

# From the lowest to the highest: a module imports from its own layer and those to its
# left. The longest prefix of a module's name counts.
LAYERS = (
    "agency.core", "tenants", "agency.api", "wallets", "webhooks", "connections",
    "credentials", "verifications", "sandbox", "organizations", "agency",
)  # fmt: skip
# Found by Django or by the routes of the root; no other module imports these.
WIRING = ("admin", "apps", "urls")
PACKAGES = sorted({name.partition(".")[0] for name in LAYERS})
LONG_LINE, LONG_FILE, MANY = 88, 350, 6
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
# Names that Django, REST framework, Celery, logging and the standard library look for.
OF_FRAMEWORKS = {
    "add_arguments", "change_view", "clean", "close", "create", "delete",
    "destroy", "emit", "format", "get", "get_queryset", "handle",
    "has_add_permission", "has_change_permission", "has_delete_permission", "list",
    "post", "put", "read", "ready", "retrieve", "run", "save", "send",
    "to_internal_value", "to_representation", "update", "validate", "write",
}  # fmt: skip


class Module(NamedTuple):
    name: str
    text: str
    tree: ast.Module

    def lines(self) -> list[str]:
        """Those that are not blank."""
        return [line for line in self.text.splitlines() if line.strip()]

    def functions(self) -> list[str]:
        """The names of all functions and methods, nested ones too."""
        return [
            node.name for node in ast.walk(self.tree) if isinstance(node, FUNCTIONS)
        ]

    def comments(self) -> int:
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return sum(token.type == tokenize.COMMENT for token in tokens)


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
            text = path.read_text()
            modules[name] = Module(name, text, ast.parse(text))
    return modules


def imports_of(module: Module, modules: dict[str, Module]) -> Iterator[str]:
    """The modules of ours that it imports, also inside functions."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in modules else str(node.module) for name in inner]
        else:
            continue
        yield from (name for name in names if name in modules and name != module.name)


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
    return max(
        (
            number
            for number, name in enumerate(LAYERS)
            if f"{module}.".startswith(f"{name}.")
        ),
        key=lambda number: len(LAYERS[number]),
    )


def upward_imports(graph: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Each import of a module whose layer stands to the right."""
    pairs = [(name, other) for name, others in graph.items() for other in others]
    return sorted(pair for pair in pairs if layer_of(pair[1]) > layer_of(pair[0]))


def repeated_names(modules: Iterable[Module]) -> Counter[str]:
    """Names of functions defined MANY times or more, without those of frameworks."""
    counted = Counter(name for module in modules for name in module.functions())
    ours = {
        name
        for name in counted
        if name not in OF_FRAMEWORKS and not name.startswith("__")
    }
    return Counter({name: counted[name] for name in ours if counted[name] >= MANY})


def is_one_word(name: str) -> bool:
    return "_" not in name.strip("_")


def report() -> str:
    modules = read_modules()
    graph = import_graph(modules)
    lines = [line for module in modules.values() for line in module.lines()]
    functions = [name for module in modules.values() for name in module.functions()]
    ours = [name for name in functions if not name.startswith("__")]
    circles = cycles(graph)
    upward = upward_imports(graph)
    repeated = repeated_names(modules.values())
    comments = sum(module.comments() for module in modules.values())
    long_files = [
        one for one in modules.values() if len(one.text.splitlines()) > LONG_FILE
    ]
    by_package = defaultdict(int)
    for name, other in upward:
        by_package[f"{name.partition('.')[0]} -> {other.partition('.')[0]}"] += 1
    rows = {
        "modules, lines that are not blank": f"{len(modules)}, {len(lines):,}",
        "module cycles": f"{len(circles)}, with {sum(map(len, circles))} modules",
        "upward imports": f"{len(upward)}, of {len(by_package)} pairs of packages",
        f"names defined {MANY} times or more": (
            f"{len(repeated)}: {names_of(repeated)}"
        ),
        "functions per 1,000 lines": f"{1000 * len(functions) / len(lines):.0f}",
        "names of one word": percent(sum(map(is_one_word, ours)), len(ours)),
        f"lines of {LONG_LINE} columns and more": percent(
            sum(len(line) >= LONG_LINE for line in lines), len(lines)
        ),
        f"files over {LONG_FILE} lines": str(len(long_files)),
        "comments per 100 lines": f"{100 * comments / len(lines):.1f}",
    }
    return "\n".join(f"{name:36} {figure}" for name, figure in rows.items())


def names_of(counted: Counter[str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in counted.most_common())


def percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %"
