"""granian, whose processes are not ready for a while before their port closes.

A load balancer that asks /health/ready then sends calls elsewhere, while those that
still come are answered. SIGINT and a second SIGTERM stop at once. Only
`manage.py start web` runs this module; its arguments are granian's.
"""

import os
import signal
from contextlib import suppress
from threading import Timer
from typing import Any

import granian.cli
from granian.server import MPServer

from agency.server.parent import NOT_READY


def read_delay() -> float:
    return float(os.environ.get("WEB_STOP_DELAY") or 5)


class Server(MPServer):
    is_stopping = False

    def signal_handler_interrupt(self, *signaled: Any) -> None:
        delay = read_delay()
        if signaled[:1] != (signal.SIGTERM,) or self.is_stopping or not delay:
            super().signal_handler_interrupt(*signaled)
            return
        self.is_stopping = True
        for worker in self.wrks:
            # One that got the signal too, as the whole group did, ends by intent.
            worker.interrupt_by_parent = True
            if worker.is_alive():
                with suppress(ProcessLookupError):
                    os.kill(worker.inner.pid, NOT_READY)
        timer = Timer(delay, super().signal_handler_interrupt)
        timer.daemon = True
        timer.start()


if __name__ == "__main__":
    granian.cli.Server = Server  # its command line has no option for the class
    granian.cli.entrypoint()
