"""The rules that hold for every module: who may import whom, and who may do what."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.measures.source import reachable
from tests.support.paths import ROOT

# From the lowest to the highest: a module imports what stands to its left. The longest prefix of a
# module's name counts.
LAYERS = (
    "agency.core",
    "tenants",
    "agency.api",
    "wallets",
    "webhooks",
    "connections",
    "credentials",
    "verifications",
    "organizations",
    "agency",
)
PACKAGES = sorted({name.partition(".")[0] for name in LAYERS})
WIRING = {
    "admin",
    "apps",
    "urls",
}  # found by Django or the root's routes, imported by nobody else
ROOF = {
    "agency",
    "organizations",
}  # the packages whose modules may use the APIs of the others
WHEELS = {
    "nacl": {"wallets/keys.py"},
    "base58": {"wallets/keys.py"},
    "anoncreds": {"wallets/anoncreds.py"},
    "indy_vdr": {
        f"credentials/ledgers/indy/{name}.py"
        for name in ("__init__", "pool", "reads", "try_genesis", "writes")
    },
    "cryptography": {"tenants/vault.py"},
    "requests": {"agency/devtools/management/commands/demo.py"},
    "redis": {
        "agency/core/cache.py",
        "agency/core/rate_limits.py",
        "agency/devtools/embedded/valkey.py",
    },
    "h11": {"agency/core/http.py"},
    "prometheus_client": {"agency/core/metrics.py", "agency/ops/monitoring.py"},
    "did_peer_4": {"connections/didcomm/dids.py"},
    "qrcode": {"connections/api/qr_codes.py"},
    "PIL": {"tenants/images.py"},
}
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
CATCH_ALL = {
    "agency/ops/probes.py": {"run"},  # whatever breaks is what it reports
    "agency/core/workers.py": {
        "notify_worker"
    },  # whatever the broker does, the rows are safe
    "connections/messaging/inbound.py": {"process"},  # the worker's loop
    "connections/messaging/transport.py": {"deliver"},  # the worker's loop
    "credentials/publications.py": {"try_job"},  # the worker's loop
    "credentials/tasks.py": {"finish"},  # the worker's loop
    "webhooks/delivery/call.py": {"make_call"},  # the worker's loop
    "webhooks/events/stream.py": {"run"},  # the loop that serves all listeners
}


def modules() -> dict[str, ast.Module]:
    paths = [
        path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))
    ]
    return {
        name_of(path): ast.parse(path.read_text())
        for path in paths
        if "migrations" not in path.relative_to(ROOT).parts
    }


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def file_of(module: str) -> str:
    path = Path(*module.split("."))
    return str(
        path / "__init__.py" if (ROOT / path).is_dir() else path.with_suffix(".py")
    )


MODULES = modules()


def layer_of(module: str) -> int:
    """The number of the layer; what is only wiring stands right of all."""
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


def is_api(module: str) -> bool:
    """Whether it is in the `api` folder of an app."""
    return module.split(".")[1:2] == ["api"]


def imported(tree: ast.Module) -> Iterator[str]:
    """Every module that is imported, also inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in MODULES else node.module


def functions_with(tree: ast.Module, found) -> set[str]:
    """The functions that hold a node for which `found` is true; `` for the module itself."""
    names = set()
    for function in ast.walk(tree):
        if isinstance(function, FUNCTIONS) and any(
            found(n) for n in ast.walk(function)
        ):
            names.add(function.name)
    return names or ({""} if any(found(node) for node in ast.walk(tree)) else set())


def assigns_state(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == "state" and isinstance(node.ctx, ast.Store)
    if not isinstance(node, ast.Call):
        return False
    called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    called = node.func.id if isinstance(node.func, ast.Name) else called
    keywords = {keyword.arg for keyword in node.keywords}
    texts = {inner.value for inner in ast.walk(node) if isinstance(inner, ast.Constant)}
    by_keyword = called in ("update", "update_or_create") and "state" in keywords
    return by_keyword or (called in ("setattr", "bulk_update") and "state" in texts)


def catches_all(node: ast.AST) -> bool:
    """Whether it catches every exception and does not raise it on."""
    if not isinstance(node, ast.ExceptHandler) or isinstance(node.body[-1], ast.Raise):
        return False
    if node.type is None:
        return True
    kinds = {inner.id for inner in ast.walk(node.type) if isinstance(inner, ast.Name)}
    return not kinds.isdisjoint({"Exception", "BaseException"})


def arrows() -> Iterator[tuple[str, str]]:
    """Each import of one module of ours by another."""
    for module, tree in MODULES.items():
        names = {name for name in imported(tree) if name in MODULES and name != module}
        yield from ((module, name) for name in sorted(names))


def test_a_module_imports_only_what_stands_to_its_left():
    assert [pair for pair in arrows() if layer_of(pair[1]) > layer_of(pair[0])] == []


def test_an_api_is_used_by_apis_and_routes_only():
    found = [
        (module, name)
        for module, name in arrows()
        if is_api(name) and not name.startswith("agency.")
        if not is_api(module)
        if module.rpartition(".")[2] != "urls" and module.partition(".")[0] not in ROOF
    ]
    assert found == []


def test_production_imports_nothing_of_a_developers_tools():
    tools = "agency.devtools"
    found = {module for module, name in arrows() if name.startswith(tools)}
    assert {module for module in found if not module.startswith(tools)} == {
        "agency.__main__"
    }


@pytest.mark.parametrize("package", ["connections.didcomm", "verifications.proofs"])
def test_protocol_code_imports_no_django_not_even_through_another_module(package):
    """What is read and computed there needs no database, so it can be tested without one.

    The packages on the way (`agency/__init__.py` loads Celery) do not count.
    """
    graph = {module: set() for module in MODULES}
    for module, name in arrows():
        graph[module].add(name)
    found = {
        (module, name)
        for module in MODULES
        if f"{module}.".startswith(f"{package}.")
        for name in reachable(module, graph) | {module}
        if "django" in heads(MODULES[name])
    }
    assert found == set()


def test_every_boundary_is_where_it_is_said_to_be():
    found = {file_of(module): heads(tree) for module, tree in MODULES.items()}
    for wheel, files in WHEELS.items():
        assert {file for file, wheels in found.items() if wheel in wheels} == files, (
            wheel
        )


def heads(tree):
    return {name.split(".")[0] for name in imported(tree)}


def test_nothing_but_move_assigns_a_state():
    found = {
        module: functions_with(tree, assigns_state) for module, tree in MODULES.items()
    }
    del found["agency.core.states"]
    assert {module: names for module, names in found.items() if names} == {}


def test_only_the_worker_loop_and_the_health_check_catch_everything():
    found = {
        file_of(m): functions_with(tree, catches_all) for m, tree in MODULES.items()
    }
    assert {file: names for file, names in found.items() if names} == CATCH_ALL


@pytest.mark.parametrize(
    "code",
    [
        "a.state = 1",
        "a.state, b = 1, 2",
        "a.state: int = 1",
        "setattr(a, 'state', 1)",
        "rows.update(state=1)",
        "rows.bulk_update(x, ['state'])",
    ],
)
def test_the_search_for_assignments_finds_each_kind(code):
    assert functions_with(ast.parse(code), assigns_state) == {""}


@pytest.mark.parametrize(
    "code", ["a = b.state", "rows.filter(state=1).update(problem=2)"]
)
def test_the_search_for_assignments_leaves_reading_alone(code):
    assert functions_with(ast.parse(code), assigns_state) == set()
