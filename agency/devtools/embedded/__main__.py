import os
import signal
import subprocess
import sys

from agency.devtools.embedded import SIGNALS, throw_away
from agency.devtools.embedded.home import Failed


def main(command: list[str]) -> int:
    for number in SIGNALS:
        signal.signal(number, signal.default_int_handler)
    with (
        throw_away() as values,
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
except Failed as failure:
    sys.exit(str(failure))
