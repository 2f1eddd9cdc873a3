import os
import signal
import subprocess
import sys

from agency.devtools.embedded import SIGNALS, template, temporary_servers
from agency.devtools.embedded.home import ToolError


def main(command: list[str]) -> int:
    for number in SIGNALS:
        signal.signal(number, signal.default_int_handler)
    if not command:
        template.make()
        return 0
    with (
        temporary_servers() as values,
        subprocess.Popen(command, env=os.environ | values) as child,
    ):
        try:
            return child.wait()
        except KeyboardInterrupt:
            child.terminate()
            raise


try:
    sys.exit(main(sys.argv[1:]))
except KeyboardInterrupt:
    sys.exit(130)
except ToolError as failure:
    sys.exit(str(failure))
