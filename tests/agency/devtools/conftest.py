from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.agency.devtools.launcher import Launcher


@pytest.fixture
def launcher(tmp_path: Path) -> Iterator[Launcher]:
    launcher = Launcher(tmp_path)
    yield launcher
    left = launcher.processes()
    for process in left:
        process.kill()
    psutil.wait_procs(left, timeout=5)
    assert not left
