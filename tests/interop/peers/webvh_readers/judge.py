"""What did-webvh (PyPI) says of logs: python judge.py FILE, as judge.mjs.

It runs in an environment of its own, because it brings 50 MB of other packages.
"""

import asyncio
import json
import pathlib
import sys
import tempfile

from did_webvh.resolver import resolve_did


async def judge(text: str, folder: pathlib.Path) -> str:
    path = folder / "did.jsonl"
    path.write_text(text)
    did = json.loads(text.split("\n")[0])["state"]["id"]
    try:
        found = await resolve_did(did, local_history=path)
    except Exception as error:  # whatever it raises is its verdict
        return repr(error)
    if not found.document:
        return str(found.resolution_metadata)
    is_over = (found.document_metadata or {}).get("deactivated")
    return "deactivated" if is_over else "valid"


async def main() -> None:
    logs = json.loads(pathlib.Path(sys.argv[1]).read_text())
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        print(json.dumps({name: await judge(logs[name], path) for name in logs}))


asyncio.run(main())
