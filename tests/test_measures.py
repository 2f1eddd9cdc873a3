"""What `python -m tests.measures` counts."""

from tests.measures.source import (
    Module,
    cycles,
    import_graph,
    late_bound,
    thread_locals,
    two_way_pairs,
    untyped_words,
    upward_imports,
)
from tests.measures.walks import Walk
from webhooks.delivery import signing


def modules(**texts):
    named = {name.replace("__", "."): text for name, text in texts.items()}
    return {name: Module.parse(name, text) for name, text in named.items()}


def test_modules_that_reach_each_other_are_a_cycle():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a", "e"}, "e": set()}
    assert cycles(graph) == [{"a", "b", "c"}]


def test_imports_inside_functions_count_too():
    found = modules(
        core__low="def late():\n    from wallets import high",
        wallets__high="import core.low",
    )
    graph = import_graph(found)
    assert graph == {
        "core.low": {"wallets.high"},
        "wallets.high": {"core.low"},
    }
    assert upward_imports(graph) == [("core.low", "wallets.high")]


def test_rooms_that_import_each_other_are_a_pair():
    graph = {
        "wallets.keys": {"wallets.anoncreds.issuing"},
        "wallets.anoncreds.issuing": {"wallets.anoncreds.proving"},
        "wallets.anoncreds.proving": {"wallets.keys"},
        "tenants.lifecycle.erasure": {"wallets.models"},
        "wallets.models": {"tenants.models"},
    }
    assert two_way_pairs(graph) == {("wallets.anoncreds", "wallets.keys")}


def test_hidden_channels_are_counted():
    found = modules(
        core__low="x = threading.local()\nclass Y(local): pass\nz = ContextVar('z')",
        wallets__high="from core import low\nlow.x = 1\nlow.y.append(2)\nlow.z(3)",
    )
    assert thread_locals(found["core.low"]) == 3
    assert set(late_bound(found["wallets.high"], found)) == {"core.low.x", "core.low.y"}


def test_words_without_a_type_are_counted():
    [module] = modules(
        core__x="def f(a: Any, b: dict[str, Any], c: dict) -> object: cast(int, a)"
    ).values()
    assert untyped_words(module) == 5


def test_a_walk_counts_calls_of_ours_and_statements(db):
    from django.contrib.sessions.models import Session

    with Walk() as walk:
        signing.new_secret()
        assert not Session.objects.exists()
    files, functions, calls, switches, statements = walk.figures()
    assert (files, switches, statements) == (1, 0, 1)
    assert functions == calls == 1
