"""Printing to whatever stands at the other end: a terminal that cannot draw every character, a
pipe that closes, a person who has seen enough. None of these is worth a traceback.
"""

import errno
import io
import os
import sys
from collections.abc import Callable

CLOSED_PIPE, INTERRUPTED = 141, 130
"""What a shell reports for a program that SIGPIPE or Ctrl-C has ended."""
FAILED_WRITES = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""Why a text cannot be written to where it should go. Any other error has another cause."""


def printing(show: Callable[[], int]) -> int:
    """The exit code of `show`, or of what kept it from printing."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    try:
        code = show()
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        quiet()
        return CLOSED_PIPE
    except OSError as wrong:
        if wrong.errno not in FAILED_WRITES:
            raise
        print(f"holdfast: could not write: {wrong}", file=sys.stderr)
        quiet()
        return 1


def quiet() -> None:
    """Let the interpreter's last flush go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
