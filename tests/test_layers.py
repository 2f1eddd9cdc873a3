"""The rules that hold for every module: who may import whom, and who may do what."""

import ast
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.measures import source
from tests.support.paths import ROOT

# The layers that may use the APIs of the apps, beside those APIs and the routes.
USES_EVERY_API = ("agency", "core.api", "tenants.lifecycle")
# The layers that answer people and programs; beside them the API of each app.
FACES = (
    "core.api",
    "agency.holders",
    "agency.mails",
    "agency.studio",
    "agency.support",
)
# What only they import.
OF_FACES = ("rest_framework", "django.forms", "django.template", "django.shortcuts")
# The only files that import a library, so that it can be replaced and audited there.
LIBRARY_BOUNDARIES = {
    "nacl": {"wallets/keys.py"},
    "base58": {"wallets/keys.py"},
    "anoncreds": {
        f"wallets/anoncreds/{name}.py"
        for name in (
            "generator",
            "issuing",
            "proving",
            "refusals",
            "revocation",
        )
    },
    "indy_vdr": {
        f"credentials/ledgers/indy/{name}.py"
        for name in ("__init__", "pool", "reads", "try_genesis", "writes")
    },
    "rfc8785": {"credentials/ledgers/webvh/encoding.py"},
    "cryptography": {
        "tenants/vault.py",
        "wallets/jose/certificates.py",
        "wallets/jose/signing.py",
    },
    "joserfc": {"wallets/jose/encryption.py"},
    "requests": {"agency/devtools/management/commands/demo.py"},
    "redis": {"core/valkey/cache.py", "core/valkey/rate_limits.py"},
    "h11": {"core/net/http.py", "core/net/idle_connections.py"},
    "prometheus_client": {"core/telemetry/metrics.py", "agency/ops/monitoring.py"},
    "did_peer_4": {"connections/didcomm/dids.py"},
    "qrcode": {"connections/api/qr_codes.py"},
    "PIL": {"tenants/pictures.py"},
}
# The functions that catch every exception, each for the reason beside it.
CATCH_ALL = {
    "agency/management/commands/deliver.py": {"run_job"},  # one job of the process
    "agency/ops/health.py": {"run"},  # whatever breaks is what it reports
    "core/api/views.py": {
        "dispatch"
    },  # REST framework's: what is no AgencyError goes on
    # One row must not stop the others: put_back() of each queue says what becomes of it.
    "core/work/leases.py": {"attempt"},
    # Whatever the broker does, the rows are safe.
    "core/work/notify.py": {"notify_worker"},
    # What the sender did stands, whatever the handler does.
    "connections/transport/delivery.py": {"handle_hosted"},
    # What was received stands, and a later attempt issues.
    "credentials/issue_credential/handlers.py": {"_issue_before_commit"},
    "webhooks/delivery/call.py": {"call_webhook"},  # the worker's loop
    "webhooks/delivery/recording.py": {"record_all"},  # the worker's loop
    "webhooks/events/stream.py": {"run"},  # the loop that serves all listeners
}

# The apps whose transactions may send messages or change what a connection's lock guards.
SENDING_APPS = {
    "connections", "credentials", "sandbox", "tenants.lifecycle", "verifications"
}  # fmt: skip

modules = cache(source.read_modules)


@cache
def graph():
    return source.import_graph(modules())


def import_pairs():
    return [(name, used) for name, uses in graph().items() for used in sorted(uses)]


def file_of(module: str) -> str:
    path = Path(*module.split("."))
    is_package = (ROOT / path).is_dir()
    return str(path / "__init__.py" if is_package else path.with_suffix(".py"))


def is_api(module: str) -> bool:
    """Whether it is in the `api` folder of an app, or a module of that name."""
    return "api" in module.split(".")


@cache
def imported_libraries(module: str) -> set[str]:
    """The top-level names of all imports, also of those inside functions."""
    names = set()
    for node in modules()[module].nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, "imports are absolute"
            names.add(node.module.partition(".")[0])
    return names


def functions_with(
    nodes: list[ast.AST], is_wanted: Callable[[ast.AST], bool]
) -> set[str]:
    """The functions that hold a wanted node; `{""}` if only the module itself does."""
    if not any(map(is_wanted, nodes)):
        return set()
    names = {
        function.name
        for function in nodes
        if isinstance(function, source.FUNCTIONS)
        and any(map(is_wanted, ast.walk(function)))
    }
    return names or {""}


def assigns_state(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == "state" and isinstance(node.ctx, ast.Store)
    if not isinstance(node, ast.Call):
        return False
    called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    called = node.func.id if isinstance(node.func, ast.Name) else called
    if called in ("update", "update_or_create"):
        return "state" in {keyword.arg for keyword in node.keywords}
    return called in ("setattr", "bulk_update") and "state" in {
        inner.value for inner in ast.walk(node) if isinstance(inner, ast.Constant)
    }


def catches_all(node: ast.AST) -> bool:
    """Whether it catches every exception and does not raise it on."""
    if not isinstance(node, ast.ExceptHandler) or isinstance(node.body[-1], ast.Raise):
        return False
    if node.type is None:
        return True
    kinds = {inner.id for inner in ast.walk(node.type) if isinstance(inner, ast.Name)}
    return not kinds.isdisjoint({"Exception", "BaseException"})


def test_a_module_imports_only_from_its_own_layer_and_lower_ones():
    assert source.upward_imports(graph()) == []


def test_no_module_cycles():
    assert source.cycles(graph()) == []


def test_no_two_rooms_import_each_other():
    """Layers, and the folders and modules inside each.

    tenants stands on both sides of the apps only because of tenants/lifecycle/, and core
    on both sides of tenants only because of core/api/: these are layers of their own.
    """
    assert source.two_way_pairs(graph()) == set()


def test_no_app_imports_what_stands_above_it():
    found = [pair for pair in import_pairs() if source.is_below(pair[1], "agency")]
    assert {name.partition(".")[0] for name, _ in found} == {"agency"}


def test_only_faces_know_forms_templates_and_the_framework_of_the_api():
    found = {
        (name, used)
        for name, module in modules().items()
        if not source.is_below(name, *FACES) and not is_api(name)
        for used in source.names_imported(module)
        if source.is_below(used, *OF_FACES)
    }
    assert found == set()


def test_an_api_is_used_by_apis_and_routes_only():
    found = [
        (module, name)
        for module, name in import_pairs()
        if is_api(name) and not source.is_below(name, "core.api")
        if not is_api(module) and module.rpartition(".")[2] != "urls"
        if not source.is_below(module, *USES_EVERY_API)
    ]
    assert found == []


def test_what_travels_with_a_call_stands_in_one_object():
    """core/call.py. The cache keeps its own connections for each thread."""
    found = {name for name, one in modules().items() if source.thread_locals(one)}
    assert found == {"core.call", "core.valkey.cache"}


def test_no_module_sets_the_globals_of_another():
    """A room above registers with a Hook (core/hooks.py)."""
    found = {
        name: {*source.late_bound(one, modules())} for name, one in modules().items()
    }
    assert {name: names for name, names in found.items() if names} == {}


def test_production_imports_nothing_of_a_developers_tools():
    tools = "agency.devtools"
    found = {module for module, name in import_pairs() if name.startswith(tools)}
    # Beside a `make run`, commands use its servers.
    assert {module for module in found if not module.startswith(tools)} == {
        "agency.django_commands"
    }


def test_the_command_line_needs_nothing_of_the_server():
    """It is a package of its own, with these libraries alone."""
    mine = [name for name in modules() if name.partition(".")[0] == "agency_cli"]
    used = {other for name, other in import_pairs() if name in mine}
    libraries = set().union(*map(imported_libraries, mine)) - sys.stdlib_module_names
    assert used <= set(mine)
    assert libraries == {"agency_cli", "standardwebhooks", "yaml"}


@pytest.mark.parametrize("package", ["connections.didcomm", "verifications.proofs"])
def test_protocol_code_imports_no_django_not_even_through_another_module(package):
    """Modules that parse and compute need no database, so tests need none either.

    The packages on the way do not count.
    """
    found = {
        (module, name)
        for module in modules()
        if f"{module}.".startswith(f"{package}.")
        for name in source.reachable(module, graph()) | {module}
        if "django" in imported_libraries(name)
    }
    assert found == set()


@pytest.mark.parametrize("library", LIBRARY_BOUNDARIES)
def test_a_library_is_imported_by_its_boundary_files_only(library):
    found = {file_of(name) for name in modules() if library in imported_libraries(name)}
    assert found == LIBRARY_BOUNDARIES[library]


def test_nothing_but_move_assigns_a_state():
    found = {
        name: functions_with(module.nodes, assigns_state)
        for name, module in modules().items()
        if name != "core.states"
    }
    assert {name: functions for name, functions in found.items() if functions} == {}


def moves(node: ast.AST) -> bool:
    """Whether it calls move() of core/states.py."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name | ast.Attribute)
        and "move" in (getattr(node.func, "id", ""), getattr(node.func, "attr", ""))
    )


def test_only_methods_of_the_models_with_states_move():
    """So each transition has a name, that of the method, and one place."""
    found = {
        f"{name}.{node.name}" if isinstance(node, ast.ClassDef) else name
        for name, module in modules().items()
        for node in module.tree.body
        if any(map(moves, ast.walk(node)))
    }
    assert found == {
        "connections.exchange.Exchange",
        "connections.models.Connection",
        "credentials.models.credential.Credential",
        "verifications.models.Verification",
    }


def uses_djangos_atomic(node: ast.AST) -> bool:
    """Whether it is `transaction.atomic`, or imports `atomic` from Django."""
    if isinstance(node, ast.ImportFrom) and node.module == "django.db.transaction":
        return True
    if not isinstance(node, ast.Attribute) or node.attr != "atomic":
        return False
    owner = node.value
    name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
    return name == "transaction"


def test_apps_whose_transactions_may_send_messages_use_our_atomic():
    """In Django's, nothing can be put off until before the commit, or be locked."""
    found = {
        name
        for name, module in modules().items()
        if source.is_below(name, *SENDING_APPS)
        and any(map(uses_djangos_atomic, module.nodes))
    }
    assert found == set()


def test_only_the_listed_functions_catch_every_exception():
    found = {
        file_of(name): functions_with(module.nodes, catches_all)
        for name, module in modules().items()
    }
    assert {file: names for file, names in found.items() if names} == CATCH_ALL


@pytest.mark.parametrize(
    ("search", "code", "is_found"),
    [
        (assigns_state, "a.state = 1", True),
        (assigns_state, "a.state, b = 1, 2", True),
        (assigns_state, "a.state: int = 1", True),
        (assigns_state, "setattr(a, 'state', 1)", True),
        (assigns_state, "rows.update(state=1)", True),
        (assigns_state, "rows.bulk_update(x, ['state'])", True),
        (assigns_state, "a = b.state", False),
        (assigns_state, "rows.filter(state=1).update(problem=2)", False),
        (moves, "move(row, sources, target)", True),
        (moves, "states.move(row, sources, target)", True),
        (moves, "row.moved_at or row.move_to(there)", False),
        (uses_djangos_atomic, "with transaction.atomic(): pass", True),
        (uses_djangos_atomic, "@transaction.atomic\ndef f(): pass", True),
        (uses_djangos_atomic, "db.transaction.atomic(durable=True)", True),
        (uses_djangos_atomic, "from django.db.transaction import atomic", True),
        (uses_djangos_atomic, "with transactions.atomic(): pass", False),
        (uses_djangos_atomic, "transaction.on_commit(f)", False),
    ],
)
def test_the_searches_find_each_kind_and_nothing_else(search, code, is_found):
    assert bool(functions_with(list(ast.walk(ast.parse(code))), search)) is is_found
