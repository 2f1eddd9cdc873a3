"""How `python -m tests.measures mutations` changes the source."""

import ast

from tests.measures.mutations import places_in

SOURCE = '''
def told(a: int, b, *, loud=False):
    """Not b == a."""
    if a == b and not a < 3:
        logger.warning("a == %s", 1)
        told(a, b)
    ends = [
        a + 1 if "é" in b else f"{a + 1}"
    ]
    return ends
'''
OTHER_SOURCE = """
TOLD = "earlier"


def other(b, a):
    if a == b and not a < 3:
        return a
""" + SOURCE.replace("def told", "@other\ndef told")


def changed(source):
    places = places_in("a.py", source.encode())
    return {
        mutation: place.changed(source.encode()).decode()
        for mutation, place in places.items()
    }


def test_each_change_makes_valid_python_of_one_line():
    original = SOURCE.splitlines()
    found = {}
    for mutation, text in changed(SOURCE).items():
        ast.parse(text)
        pairs = zip(original, text.splitlines(), strict=True)
        [line] = [new for old, new in pairs if new != old]
        found[mutation.change, mutation.number] = line.strip()
    assert found == {
        ("False to True", 0): "def told(a: int, b, *, loud=True):",
        ("And to Or", 0): "if (a == b or not a < 3):",
        ("Eq to NotEq", 0): "if (a != b) and not a < 3:",
        ("Not removed", 0): "if a == b and (a < 3):",
        ("Lt to LtE", 0): "if a == b and not (a <= 3):",
        ("3 to 4", 0): "if a == b and not a < (4):",
        ("Call removed", 0): "pass",
        ("In to NotIn", 0): "a + 1 if ('é' not in b) else f\"{a + 1}\"",
        ("Add to Sub", 0): '(a - 1) if "é" in b else f"{a + 1}"',
        ("1 to 2", 0): 'a + (2) if "é" in b else f"{a + 1}"',
        ("None returned", 0): "return None",
    }


def test_a_change_is_found_again_by_the_text_of_its_line():
    before = changed(SOURCE)
    after = changed(OTHER_SOURCE)
    [call] = [one for one in before if one.change == "Call removed"]
    assert after[call] == OTHER_SOURCE.replace("        told(a, b)", "        pass")
    [second] = [one for one in after if one.change == "Lt to LtE" and one.occurrence]
    first = second._replace(occurrence=0)
    assert after[first].index("<=") < after[second].index("<=")
