"""A worker process of granian ends with its master, however that one ends."""

import ctypes
import multiprocessing
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def end_with_master() -> None:
    """Asks Linux to kill this process when the process that started it is gone.

    Without it the workers of a master that was killed with -9 keep the port, and go on serving the
    settings they were started with. SIGKILL, as a worker that hangs must end too: requests that
    are cut off can be repeated, and queued work is rows. Other systems know no such call. In a
    process that `multiprocessing` did not start, as gunicorn's, nothing is done.
    """
    master = multiprocessing.parent_process()
    if master is None or sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != master.pid:  # it was gone before we asked
        os.kill(os.getpid(), signal.SIGKILL)
