"""What holds a command: which sandbox this machine has, and how a command is put into it.

On Linux that is Landlock, which needs no rights and no other program; or bubblewrap, where its
program is there and works; on macOS `sandbox-exec`. Elsewhere there is none, and it is said. Nothing is
weakened in silence: bounds that a sandbox cannot hold are refused with `NoSandbox`.
"""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path

from holdfast.tools.confine import level

CONFINE = str(Path(__file__).with_name("confine.py"))
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
"""Devices that every program may write to; nothing is kept there."""
SYSTEM = (
    "/bin", "/sbin", "/usr", "/lib", "/lib32", "/lib64", "/etc", "/opt", "/proc", "/dev", "/nix",
    "/run/current-system",
)  # fmt: skip
"""What must be readable for programs to start at all."""
TRIAL = 10.0
"""Seconds that bubblewrap gets to show that it works."""


class NoSandbox(Exception):
    """A sandbox was asked for, and what there is cannot hold that; the text says what can be done."""


class Kind(Enum):
    LANDLOCK = "landlock"
    BUBBLEWRAP = "bubblewrap"
    SEATBELT = "sandbox-exec"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a command may do."""

    write: tuple[Path, ...]
    """Folders below which it may write. Devices such as `/dev/null` are always allowed."""
    read: tuple[Path, ...] | None = None
    """Folders below which it may read, besides those it may write and those of the system. None:
    it may read everything."""
    network: bool = True


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What there is to hold a command with."""

    kind: Kind
    files: bool
    """It can hold what is written, and what is read."""
    network: bool
    """It can hold connections."""
    about: str
    """A sentence for people."""
    program: str = ""
    """The program that does it, where it is one of the system."""

    def confined(self, command: Sequence[str], bounds: Bounds) -> tuple[str, ...]:
        """Options for `confine`, and the command line behind them."""
        if not self.files:
            raise NoSandbox(f"The command cannot be confined: {self.about}")
        if not bounds.network and not self.network:
            raise NoSandbox(f"The network cannot be held back: {self.about}")
        match self.kind:
            case Kind.LANDLOCK:
                return (*landlocked(bounds), "--", *command)
            case Kind.BUBBLEWRAP:
                return ("--", *wrapped(self.program, bounds), *command)
            case _:
                return ("--", self.program, "-p", seatbelt(bounds), *command)


NONE = Sandbox(
    Kind.NONE,
    files=False,
    network=False,
    about="this machine has no sandbox that Holdfast can use.",
)


def found(kind: Kind | None = None) -> Sandbox:
    """The sandbox of this machine, or the one of a kind; `NONE` if it is not there."""
    return next((box for box in present() if kind in (None, box.kind)), NONE)


@cache
def present() -> tuple[Sandbox, ...]:
    """All that work here, the one to prefer first."""
    candidates = (of_landlock(), of_bubblewrap(), of_macos())
    return tuple(box for box in candidates if box is not None)


def command_line(sandbox: Sandbox, command: Sequence[str], bounds: Bounds) -> tuple[str, ...]:
    """A command line that can be run as it is, by anyone, for a command within bounds.

    `NoSandbox` if there is none: to run without, leave this function out.
    """
    return (*python(), CONFINE, *sandbox.confined(command, bounds))


def python() -> tuple[str, ...]:
    """Python with as little around it as can be: no site packages, nothing of the environment."""
    return (sys.executable, "-I", "-S")


def of_landlock() -> Sandbox | None:
    abi = level()
    if abi < 1:
        return None
    truncating = "" if abi >= 3 else ", except that files elsewhere can be cut off (Linux 6.2 can)"
    network = "TCP connections" if abi >= 4 else "not the network (Linux 6.7 can)"
    return Sandbox(
        Kind.LANDLOCK,
        files=True,
        network=abi >= 4,
        about=f"Landlock, version {abi}: holds files{truncating} and {network}.",
    )


def of_bubblewrap() -> Sandbox | None:
    """Many systems have the program and forbid what it needs, so it is tried."""
    program = shutil.which("bwrap") if sys.platform == "linux" else None
    if program is None:
        return None
    trial = [program, "--ro-bind", "/", "/", "--dev", "/dev", "--unshare-net", "--", "true"]
    try:
        done = subprocess.run(
            trial, stdin=subprocess.DEVNULL, capture_output=True, timeout=TRIAL, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    about = "bubblewrap: holds files and the whole network."
    return Sandbox(Kind.BUBBLEWRAP, files=True, network=True, about=about, program=program)


def of_macos() -> Sandbox | None:
    program = shutil.which("sandbox-exec") if sys.platform == "darwin" else None
    if program is None:
        return None
    about = "sandbox-exec of macOS: holds files and the network (not tested by us)."
    return Sandbox(Kind.SEATBELT, files=True, network=True, about=about, program=program)


def landlocked(bounds: Bounds) -> tuple[str, ...]:
    options = ["--landlock"]
    for path in (*map(str, bounds.write), *DEVICES):
        options += ["--write", path]
    if bounds.read is not None:
        options.append("--reads-told")
        for path in (*map(str, bounds.read), *SYSTEM, sys.prefix, sys.base_prefix):
            options += ["--read", path]
    if not bounds.network:
        options.append("--no-network")
    return tuple(options)


def wrapped(program: str, bounds: Bounds) -> tuple[str, ...]:
    line = [program, "--die-with-parent", "--unshare-pid", "--unshare-ipc"]
    if bounds.read is None:
        line += ["--ro-bind", "/", "/"]
    else:
        for path in (*SYSTEM, sys.prefix, sys.base_prefix, *map(str, bounds.read)):
            line += ["--ro-bind-try", path, path]
    line += ["--dev", "/dev", "--proc", "/proc"]
    for folder in bounds.write:
        line += ["--bind", str(folder), str(folder)]
    if not bounds.network:
        line.append("--unshare-net")
    return (*line, "--")


def seatbelt(bounds: Bounds) -> str:
    """A profile in the language of macOS: the last rule that fits decides."""
    rules = ["(version 1)", "(allow default)", "(deny file-write*)"]
    for path in (*bounds.write, *map(Path, DEVICES)):
        rules.append(f"(allow file-write* (subpath {in_quotes(path)}))")
    if bounds.read is not None:
        rules.append("(deny file-read-data)")
        for path in (*bounds.read, *bounds.write, *map(Path, SYSTEM), Path("/System"),
                     Path("/Library"), Path(sys.prefix), Path(sys.base_prefix)):  # fmt: skip
            rules.append(f"(allow file-read-data (subpath {in_quotes(path)}))")
    if not bounds.network:
        rules.append("(deny network*)")
    return "\n".join(rules)


def in_quotes(path: Path) -> str:
    # Links are followed before the rules are looked at: /tmp is /private/tmp.
    plain = str(path.resolve()).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain}"'
