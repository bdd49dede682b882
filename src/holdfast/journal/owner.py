"""Who has a session open, and whether they are still there.

A process is known by its machine, the boot of that machine, its id and the moment it began: an id
alone is soon given to somebody else. Where its life cannot be looked up, on another machine or in
another container, the owner counts as alive for as long as its heartbeat is fresh. A wrong verdict
does no harm to the log: whoever was taken over is fenced off.
"""

import json
import os
import socket
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cache
from pathlib import Path

BEAT = 20.0
"""Seconds between two signs of life."""
LEASE = 90.0
"""Seconds after which an owner that cannot be looked up is taken for dead: four missed beats."""

LIVING: set[str] = set()
"""Tokens of the journals that are open in this process."""


@dataclass(frozen=True, slots=True)
class Owner:
    machine: str
    """Its name, and the namespace in which `pid` means something."""
    boot: str
    pid: int
    began: str
    """When the process began, in the machine's own words."""
    token: str
    """Of the journal: two in one process exclude each other."""
    since: float

    def as_text(self) -> str:
        return json.dumps(asdict(self))

    def in_words(self) -> str:
        since = datetime.fromtimestamp(self.since).astimezone()
        return f"process {self.pid} on {self.machine.split('/')[0]} since {since:%Y-%m-%d %H:%M:%S}"


def myself(token: str, now: float) -> Owner:
    return Owner(machine(), boot(), os.getpid(), began(os.getpid()), token, now)


def owner_of(text: str) -> Owner | None:
    """None: nobody, or nobody who can be made out."""
    try:
        return Owner(**json.loads(text))
    except (TypeError, ValueError):
        return None


def is_alive(owner: Owner, beat: float, now: float) -> bool:
    if owner.machine != machine():
        return abs(now - beat) <= LEASE  # a clock that jumped is no sign of life either
    if owner.boot != boot() or owner.began != began(owner.pid):
        return False
    return owner.pid != os.getpid() or owner.token in LIVING


@cache
def machine() -> str:
    return f"{socket.gethostname()}/{_link('/proc/self/ns/pid')}"


@cache
def boot() -> str:
    return _content("/proc/sys/kernel/random/boot_id")


def began(pid: int) -> str:
    """Empty if there is no such process; "?" if there is one and nothing else is known."""
    stat = _content(f"/proc/{pid}/stat")
    if stat:
        state, *rest = stat.rpartition(")")[2].split()
        return "" if state in "ZX" else rest[18]  # the 22nd field; the name may hold spaces
    if Path("/proc/self/stat").exists():
        return ""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except OSError:
        return "?"  # somebody else's
    return "?"


def _content(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _link(path: str) -> str:
    try:
        return str(Path(path).readlink())
    except OSError:
        return ""
