"""What `python -m tests.measures` counts."""

import ast

from tests.measures.source import (
    Module,
    cycles,
    import_graph,
    is_one_word,
    read_modules,
    repeated_names,
    upward_imports,
)
from tests.measures.walks import Walk
from webhooks.delivery import signing

# Names of functions that are defined six times or more, with their number of
# definitions. Lower a number when names go; a higher one needs a reason.
# audit.record() reads `audit_facts` of every kind of object.
MOST_DEFINITIONS = {"audit_facts": 7, "receive_problem": 6, "rows": 9}


def modules(**texts):
    named = {name.replace("__", "."): text for name, text in texts.items()}
    return {name: Module(name, text, ast.parse(text)) for name, text in named.items()}


def test_modules_that_reach_each_other_are_a_cycle():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a", "e"}, "e": set()}
    assert cycles(graph) == [{"a", "b", "c"}]


def test_imports_inside_functions_count_too():
    found = modules(
        agency__core__low="def late():\n    from wallets import high",
        wallets__high="import agency.core.low",
    )
    graph = import_graph(found)
    assert graph == {
        "agency.core.low": {"wallets.high"},
        "wallets.high": {"agency.core.low"},
    }
    assert upward_imports(graph) == [("agency.core.low", "wallets.high")]


def test_names_of_frameworks_are_not_counted_as_repeated():
    text = "\n".join("def get(): pass\ndef shown(): pass" for _ in range(6))
    assert repeated_names(modules(agency__x=text).values()) == {"shown": 6}


def test_no_further_name_is_defined_in_many_places():
    """A name with many definitions is hard to search for.

    Find a longer one instead.
    """
    counted = repeated_names(read_modules().values())
    assert {n: c for n, c in counted.items() if c > MOST_DEFINITIONS.get(n, 0)} == {}


def test_underscores_at_the_ends_make_no_second_word():
    assert is_one_word("_keep") and not is_one_word("keep_one")


def test_comments_in_texts_are_none():
    [module] = modules(agency__x='a = "# no"  # yes\n').values()
    assert module.comments() == 1


def test_a_walk_counts_calls_of_ours_and_statements(db):
    from django.contrib.sessions.models import Session

    with Walk() as walk:
        signing.new_secret()
        assert not Session.objects.exists()
    files, functions, calls, switches, statements = walk.figures()
    assert (files, switches, statements) == (1, 0, 1)
    assert functions == calls == 1
