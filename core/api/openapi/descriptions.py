"""What each tag, parameter and property of the OpenAPI document means.

Most names mean the same everywhere. descriptions.yaml lists those that do not by path
or by schema.
"""

from pathlib import Path
from typing import Any

import yaml

# PyYAML may be built without libyaml, which is ten times as fast.
SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
FILE = Path(__file__).with_suffix(".yaml")
TEXTS = yaml.load(FILE.read_text(encoding="utf-8"), SafeLoader)
TAGS: dict[str, str] = TEXTS["tags"]
PARAMETERS: dict[str, str] = TEXTS["parameters"]
PARAMETERS_BELOW: dict[str, dict[str, str]] = TEXTS["parameters_below"]
PROPERTIES: dict[str, str] = TEXTS["properties"]
PROPERTIES_OF: dict[str, dict[str, str]] = TEXTS["properties_of"]


def describe_parameter(path: str, name: str) -> str | None:
    for part, texts in PARAMETERS_BELOW.items():
        if part in path and name in texts:
            return texts[name]
    return PARAMETERS.get(name)
