"""Make a worker process of granian end with its master, even if that is killed."""

import ctypes
import multiprocessing
import os
import signal
import sys

# From the master: say that you are not ready, as you will stop (agency/server/serve.py).
NOT_READY = signal.SIGUSR1
PR_SET_PDEATHSIG = 1  # linux/prctl.h


def end_with_master() -> None:
    """Ask Linux to kill this process when its parent process ends.

    Otherwise the workers of a master that was killed with SIGKILL keep the port, and
    continue to serve with their old settings. The signal is SIGKILL, because a worker
    that hangs must end too. Clients can repeat interrupted requests, and queued work
    is stored in the database.

    Does nothing on other systems, which have no such call, and in a process that was
    not started by `multiprocessing`, such as a worker of gunicorn.
    """
    master = multiprocessing.parent_process()
    if master is None or sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != master.pid:  # the master ended before the call
        os.kill(os.getpid(), signal.SIGKILL)
