"""The lists of the docs that are made from the source: an entry for each name."""

import re
import textwrap

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
