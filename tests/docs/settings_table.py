"""The list of docs/settings.md, made from agency/settings.py.

`python -m tests.docs.settings_table` writes it. Each variable has a comment above it,
which is its text there. A default that is no literal stands in the comment's
last words, as `Default: ...`.
"""

import ast
import re
import textwrap

from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "settings.md"
SOURCE = ROOT / "agency" / "settings.py"
HEADING = "## Variables\n"
# Several entries, each with its continued lines.
LIST = re.compile(r"(?:^- `.*\n(?:  .*\n)*)+", re.MULTILINE)


def write_entry(name: str, fact: str, text: str) -> str:
    """fact: what stands behind the name in parentheses, or nothing."""
    fact = f" ({fact})" if fact else ""
    return textwrap.fill(
        f"- `{name}`{fact}: {text}",
        width=150,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def read_names(page: str) -> list[str]:
    return re.findall(r"^- `(\w+)`", page, re.MULTILINE)


# Entries of variables that only programs beside Agency read, by the one they follow.
OTHERS = {
    "WEB_PROCESSES": write_entry(
        "GRANIAN_HOST",
        "`127.0.0.1`; in the image `0.0.0.0`",
        "Address of web server and event streams, read by granian, as other `GRANIAN_…`.",
    )
}


def make_list():
    entries = []
    source = SOURCE.read_text()
    lines = source.splitlines()
    for node in ast.parse(source).body:
        calls = [one for one in ast.walk(node) if is_read(one)]
        if not calls:
            continue
        [call] = calls
        name = call.args[0].value
        text, _, words = comment_above(lines, node.lineno).partition(" Default: ")
        default = words.removesuffix(".") or show_default(call)
        entries.append(write_entry(name, default, text))
        entries += [OTHERS[name]] if name in OTHERS else []
    return "\n".join(entries) + "\n"


def is_read(node):
    """Whether this is a call that reads a variable, such as `env.str("PORT")`."""
    return isinstance(node, ast.Call) and re.fullmatch(
        r"env\.(str|int|float|bool|list|dict|json)", ast.unparse(node.func)
    )


def comment_above(lines, number):
    """The text of the comment right above a statement in this line."""
    found = []
    while lines[number - 2].startswith("# "):
        number -= 1
        found.insert(0, lines[number - 1].removeprefix("# "))
    assert found, f"no comment above: {lines[number - 1]}"
    return " ".join(found)


def show_default(call):
    """The default of a variable as an operator would write it."""
    [given] = [one.value for one in call.keywords if one.arg == "default"]
    value = eval(compile(ast.Expression(given), "default", "eval"), {})
    if isinstance(value, dict):
        value = ",".join(f"{name}={text}" for name, text in value.items())
    if isinstance(value, list):
        value = ",".join(map(str, value))
    if isinstance(value, str):
        return f"`{value}`" if value else ""
    return str(int(value))


def make_page():
    before, heading, rest = PAGE.read_text().partition(HEADING)
    return before + heading + LIST.sub(lambda _: make_list(), rest, count=1)


if __name__ == "__main__":
    PAGE.write_text(make_page())
