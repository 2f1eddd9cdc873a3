"""Import every module of the product in the working directory, with its own Python.

Prints as JSON why some could not be imported, by name, and how many were tried.
"""

import importlib
import json
import os
import pkgutil
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

# `make run`, its servers and its demo: the only ones that requirements.lock does not
# serve.
DEVELOPMENT_ONLY = {
    "agency.devtools.run",
    "agency.devtools.embedded",
    "agency.devtools.embedded.cluster",
    "agency.devtools.embedded.home",
    "agency.devtools.embedded.postgres",
    "agency.devtools.embedded.template",
    "agency.devtools.embedded.valkey",
    "agency.devtools.management.commands.demo",
    "agency.devtools.supervisor",
}


def main() -> None:
    sys.path.insert(0, os.getcwd())
    os.environ["DJANGO_SETTINGS_MODULE"] = "agency.settings"
    import django

    django.setup()
    found = {name: why_not(name) for name in modules()}
    print(json.dumps([{name: why for name, why in found.items() if why}, len(found)]))


def modules() -> Iterator[str]:
    """The modules of each package in the working directory.

    Programs (`__main__`) run when imported.
    """
    for package in sorted(path.parent for path in Path().glob("*/__init__.py")):
        yield package.name
        yield from modules_below(package)


def modules_below(folder: Path) -> Iterator[str]:
    """By folders: what a package cannot import hides nothing that lies in it."""
    for found in pkgutil.iter_modules([str(folder)]):
        path = folder / found.name
        if found.name != "__main__":
            yield ".".join(path.parts)
        if found.ispkg:
            yield from modules_below(path)


def why_not(name: str) -> str:
    try:
        importlib.import_module(name)
    except Exception as error:
        return traceback.format_exception_only(error)[-1].strip()
    return ""


if __name__ == "__main__":
    main()
