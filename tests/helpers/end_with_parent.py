"""Processes that end with the one that started them, however that one ends.

As a script it becomes the command that it is given: `python end_with_parent.py command ...`, with
the same process id. Linux only; elsewhere the command runs as it would.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def end_with_parent():
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() == 1:  # it has ended already
        os.kill(os.getpid(), signal.SIGKILL)


def ending_with_us(*command):
    """The command, so that it ends with this process. Start it from a thread that lasts: Linux
    looks at the thread."""
    if not sys.platform.startswith("linux"):
        return [*map(str, command)]
    return [sys.executable, "-ES", __file__, *map(str, command)]


if __name__ == "__main__":
    end_with_parent()
    os.execvp(sys.argv[1], sys.argv[1:])
