import subprocess
import sys
import time

import psutil

from agency.devtools.supervisor import Supervisor, end_marked_processes, has_mark
from tests.support.processes import eventually

PROGRAM = (
    "import signal, time; signal.signal(15, signal.SIG_IGN); print(1); time.sleep(60)"
)
STUBBORN = f"python -c '{PROGRAM}'"


def test_what_does_not_end_when_asked_is_killed_after_the_grace(capsys) -> None:
    supervisor = Supervisor(mark="stubborn")
    supervisor.start("stubborn", STUBBORN)
    eventually(lambda: "stubborn | 1" in capsys.readouterr().out)
    started = time.monotonic()
    supervisor.stop(grace=0.5)
    assert supervisor.services["stubborn"].returncode == -9
    assert 0.4 < time.monotonic() - started < 5


def test_a_child_of_a_service_ends_with_it() -> None:
    supervisor = Supervisor(mark="parent")
    process = supervisor.start_process(
        'python -c \'import subprocess; subprocess.run(["sleep", "60"])\''
    )
    supervisor.services["parent"] = process
    eventually(psutil.Process(process.pid).children)
    [child] = psutil.Process(process.pid).children()
    supervisor.stop(grace=0.5)
    eventually(lambda: not has_mark(child, "parent"))


def test_a_sweep_ends_what_carries_the_mark_and_nothing_else() -> None:
    supervisor = Supervisor(mark="ours")
    ours = supervisor.start_process(STUBBORN, stdout=subprocess.PIPE)
    theirs = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        assert ours.stdout and ours.stdout.readline() == "1\n"
        assert end_marked_processes("ours", grace=0.5) == 1
        assert ours.wait(5) == -9
        assert theirs.poll() is None
    finally:
        theirs.kill()
        theirs.wait()
        ours.communicate()


def test_the_output_carries_the_name(capsys) -> None:
    supervisor = Supervisor(mark="output")
    supervisor.start("web", "echo hello")
    supervisor.services["web"].wait()
    supervisor.stop()
    assert capsys.readouterr().out == "web    | hello\n"
