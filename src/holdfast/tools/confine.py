"""The program in front of a command: it confines the command, and ends with it all it started.

Run by its path, `python -I -S confine.py [options] -- command`, it imports nothing of ours and little
else, since every command waits for it. With `--keep` it stays: it starts the command as its child
and waits, for the command or for the end of its own input, which comes when whoever started it
closes it or dies. Then nothing that the command started is left, also not what left its session.
Without `--keep` it becomes the command.
"""

import ctypes
import os
import select
import signal
import sys
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 36, 38
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
"""Landlock's system calls; the same numbers on every architecture that came after them."""

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REFER, TRUNCATE, IOCTL = 1 << 13, 1 << 14, 1 << 15
CHANGING = WRITE_FILE | sum(1 << bit for bit in range(4, 13))
"""Writing to files; making and removing what is in folders."""
READING = EXECUTE | READ_FILE | READ_DIR
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL
"""The rights that a rule about a single file may have."""
TCP = 3
"""To bind, and to connect."""
SCOPES = 3
"""Abstract sockets, and signals, of processes outside."""

CANNOT = 125
"""The exit code if the command was not started: the one that `env` and `timeout` have for it."""


class Cannot(Exception):
    """The command cannot be confined, or not started."""


def main(given: list[str]) -> int:
    options, command = options_of(given)
    if "keep" in options:
        return kept(options, command)
    return become(options, command)


def options_of(given: list[str]) -> tuple[dict[str, list[str]], list[str]]:
    options: dict[str, list[str]] = {}
    at = 0
    while at < len(given) and given[at] != "--":
        name = given[at].removeprefix("--")
        if name in ("keep", "landlock", "no-network", "reads-told"):
            options[name] = []
            at += 1
        else:
            options.setdefault(name, []).append(given[at + 1])
            at += 2
    return options, given[at + 1 :]


def become(options: dict[str, list[str]], command: list[str]) -> int:
    """Confine this process and make it the command."""
    try:
        if "landlock" in options:
            landlock(
                options.get("write", []),
                options.get("read", []) if "reads-told" in options else None,
                network="no-network" not in options,
            )
        os.execvp(command[0], command)
    except (Cannot, OSError) as wrong:
        os.write(2, f"holdfast: cannot start the command: {wrong}\n".encode())
    return CANNOT


# Confining


def libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def level() -> int:
    """The version of Landlock in this kernel; 0 if there is none, or it is switched off."""
    if sys.platform != "linux":
        return 0
    return max(0, int(libc().syscall(CREATE_RULESET, None, 0, 1)))


def landlock(write: list[str], read: list[str] | None, *, network: bool) -> None:
    """From here on this process, and all that it starts, can write only in these places.

    Read: only there, or everywhere if None. What the kernel cannot hold is refused.
    """
    abi = level()
    if abi < 1:
        raise Cannot("this kernel has no Landlock")
    if abi < 4 and not network:
        raise Cannot("the Landlock of this kernel cannot hold the network; Linux 6.7 can")
    changing = CHANGING | (REFER if abi >= 2 else 0) | (TRUNCATE if abi >= 3 else 0)
    changing |= IOCTL if abi >= 5 else 0
    handled = changing | (0 if read is None else READING)
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    attributes = (ctypes.c_uint64 * 3)(handled, 0 if network else TCP, SCOPES)
    rules = call(CREATE_RULESET, ctypes.byref(attributes), size, 0)
    for path in read or ():
        allow(rules, path, READING)
    for path in write:
        allow(rules, path, changing | (handled & READING))
    if libc().prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise Cannot("this process cannot give up gaining rights")
    call(RESTRICT_SELF, rules, 0)
    os.close(rules)


def allow(rules: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return  # nothing is there that could be allowed
    if not os.path.isdir(path):  # noqa: PTH112  (pathlib would be the dearest import here)
        rights &= OF_FILES
    beneath = rights.to_bytes(8, sys.byteorder) + place.to_bytes(4, sys.byteorder)
    call(ADD_RULE, rules, 1, ctypes.c_char_p(beneath), 0)
    os.close(place)


def call(number: int, *arguments: object) -> int:
    result = int(libc().syscall(number, *arguments))
    if result < 0:
        raise Cannot(f"Landlock: {os.strerror(ctypes.get_errno())}")
    return result


# Keeping


def kept(options: dict[str, list[str]], command: list[str]) -> int:
    """Start the command, wait for it or for the end of our input, and leave nothing behind.

    What is written to `--status`: how the command ended, and how many processes it left.
    """
    grace = float(options.get("grace", ["2"])[0])
    status = int(options["status"][0]) if "status" in options else -1
    if status >= 0:
        os.set_inheritable(status, False)
    if sys.platform == "linux":
        libc().prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    child = os.fork()  # this process has one thread
    if child == 0:
        start(options, command)
    ended = None
    stopping = False
    while ended is None:
        ready, _, _ = select.select((0, woken), (), (), None)
        if woken in ready and set(os.read(woken, 64)) - {signal.SIGCHLD}:
            stopping = True
        if 0 in ready and not os.read(0, 64):
            stopping = True
        ended = reaped(child)
        if stopping:
            break
    left = 0 if stopping else after_a_moment(child)
    ended = end_all(child, grace if left or stopping else 0.0, ended)
    if status >= 0:
        os.write(status, f"{ended if ended is not None else -signal.SIGKILL} {left}".encode())
    return 0


def start(options: dict[str, list[str]], command: list[str]) -> None:
    """In the child: a session of its own, no input, the signals as they were. Does not return."""
    parent = os.getppid()
    try:
        os.setsid()
        if sys.platform == "linux":
            libc().prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:
                os._exit(CANNOT)
        signal.set_wakeup_fd(-1)
        # Python ignores these two for itself, and ignoring is inherited.
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP,
                       signal.SIGPIPE, signal.SIGXFSZ):  # fmt: skip
            signal.signal(number, signal.SIG_DFL)
        nothing = os.open("/dev/null", os.O_RDONLY)
        os.dup2(nothing, 0)
        os._exit(become(options, command))
    finally:
        os._exit(CANNOT)


def reaped(child: int) -> int | None:
    """Take leave of all that ended; how the command itself ended, if it did."""
    ended = None
    while True:
        try:
            found, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if found == 0:
            return ended
        if found == child:
            ended = os.waitstatus_to_exitcode(status)


def after_a_moment(child: int, moment: float = 0.2) -> int:
    """How many processes the command left, once those that were just ending have ended."""
    until = time.monotonic() + moment
    while (left := descendants(child)) and time.monotonic() < until:
        time.sleep(0.01)
        reaped(child)
    return len(left)


def end_all(child: int, grace: float, ended: int | None) -> int | None:
    """First ask, then force. New ones may start meanwhile, so look until there are none."""
    until = time.monotonic() + grace
    told: set[int] = set()
    while left := descendants(child) or ([child] if ended is None else []):
        forced = time.monotonic() >= until
        for process in left:
            if forced or process not in told:
                send(process, signal.SIGKILL if forced else signal.SIGTERM)
                told.add(process)
        if time.monotonic() > until + 5:
            break  # what does not end by force hangs in the kernel
        time.sleep(0.01)
        now = reaped(child)
        ended = now if ended is None else ended
    return ended


def is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError:
        return False
    return True


def send(process: int, number: int) -> None:
    try:
        os.kill(process, number)
        if number == signal.SIGTERM:
            os.kill(process, signal.SIGCONT)  # one that was stopped would not hear it
    except OSError:
        pass  # it ended by itself


def descendants(child: int) -> list[int]:
    """All processes below this one. Those whose parent died are children of ours by then.

    Only Linux can tell. Elsewhere the command's process group stands for them, as a number below
    zero, which is how signals are sent to one.
    """
    if sys.platform != "linux":
        return [-child] if is_there(-child) else []
    parents: dict[int, int] = {}
    numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
    for number in numbers:
        try:
            with open(f"/proc/{number}/stat", "rb") as file:  # noqa: PTH123
                # The name may hold anything, also spaces and brackets.
                state, parent = file.read().rpartition(b")")[2].split()[:2]
        except (OSError, ValueError):
            continue
        if state != b"Z":
            parents[number] = int(parent)
    me = os.getpid()
    below: list[int] = []
    reached = {me}
    while found := [n for n, parent in parents.items() if parent in reached and n not in reached]:
        below += found
        reached.update(found)
    return below


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
