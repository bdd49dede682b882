"""Commands that run other commands: which one is inside, and where it begins.

A wrapper with an option that is not listed here is opaque: one could not say where its own
arguments end, and so not what it runs.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from holdfast.tools.bash.syntax import Simple
from holdfast.tools.bash.words import UNKNOWN, Word

SHELLS = {"sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "fish"}
STDIN = re.compile(r"/dev/stdin$|/dev/fd/|/proc/")
"""Files that are the input of whoever opens them."""
OTHER_USER = "It runs with the rights of another user."


class Opaque(ValueError):
    """Something is run, and it cannot be said what."""


@dataclass(frozen=True, slots=True)
class Inner:
    """What a wrapper runs."""

    commands: tuple[tuple[Word, ...], ...] = ()
    texts: tuple[str, ...] = ()
    """Text that a shell will read."""
    assigned: tuple[tuple[str, Word], ...] = ()
    why: str = ""
    """Why wrapping alone is a danger."""


@dataclass(frozen=True, slots=True)
class Takes:
    """The options of a wrapper: letters and long names, without and with a value, and how many
    words come between them and the command."""

    flags: str = ""
    valued: str = ""
    long: tuple[str, ...] = ()
    long_valued: tuple[str, ...] = ()
    skips: int = 0
    why: str = ""


TRANSPARENT = {
    "timeout", "nice", "ionice", "nohup", "time", "stdbuf", "setsid", "command", "builtin", "env",
    "exec", "chronic", "coproc", "busybox", "toybox",
}  # fmt: skip
"""Wrappers that add nothing a rule would care for: only what is inside them counts."""
WRAPPERS = {
    "timeout": Takes("vf", "sk", ("foreground", "preserve-status", "verbose"),
                     ("signal", "kill-after"), 1),
    "nice": Takes("", "n", (), ("adjustment",)),
    "ionice": Takes("t", "cn", ("ignore",), ("class", "classdata")),
    "nohup": Takes(),
    "time": Takes("pv", "f", ("portability", "verbose"), ("format",)),
    "stdbuf": Takes("", "ioe", (), ("input", "output", "error")),
    "setsid": Takes("cfw", "", ("ctty", "fork", "wait")),
    "command": Takes("p"),
    "builtin": Takes(),
    "exec": Takes("cl", "a"),
    "chronic": Takes("ve"),
    "coproc": Takes(),
    "busybox": Takes(),
    "toybox": Takes(),
    "env": Takes("i0v", "u", ("ignore-environment", "null", "debug"), ("unset",)),
    "taskset": Takes("a", "", (), (), 1),
    "strace": Takes("fcqtTvy", "eoPsS"),
    "flock": Takes("xsneuF", "wE", ("exclusive", "shared", "nonblock"), ("timeout",), 1),
    "chroot": Takes("", "", (), ("userspec", "groups"), 1, "It works in another root folder."),
    "unshare": Takes("mnpuirUCfc", "", ("map-root-user", "fork", "mount", "net", "user", "pid")),
    "sudo": Takes("AbEHnPSkKB", "ugpCrtThDR", ("preserve-env", "non-interactive", "set-home"),
                  ("user", "group", "host", "prompt", "chdir"), 0, OTHER_USER),
    "doas": Takes("nL", "uC", (), (), 0, OTHER_USER),
    "pkexec": Takes("", "", ("disable-internal-agent", "keep-cwd"), ("user",), 0, OTHER_USER),
    "xargs": Takes("0rtpxo", "InPLsdaE", ("null", "no-run-if-empty", "verbose"),
                   ("max-args", "max-procs", "max-lines", "delimiter", "arg-file", "replace")),
}  # fmt: skip


def inner(name: str, simple: Simple) -> Inner | None:
    """What this command runs besides itself; None if nothing that one could see."""
    words = simple.words
    if name in SHELLS:
        return in_shell(simple)
    if name in OPAQUE:
        raise Opaque(f"what '{name}' runs is not looked into")
    if name in SPECIAL:
        return SPECIAL[name](words)
    takes = WRAPPERS.get(name)
    if takes is None:
        return None
    if name == "command" and any(word.value in ("-v", "-V") for word in words[1:2]):
        return None
    rest = after_options(name, words, takes)
    assigned: tuple[tuple[str, Word], ...] = ()
    if name in ("env", "sudo"):
        assigned, rest = assignments(rest)
    if not rest:
        return Inner(assigned=assigned, why=takes.why) if takes.why else None
    if name == "xargs":
        rest = (*rest, UNKNOWN)
    return Inner((rest,), assigned=assigned, why=takes.why)


def after_options(name: str, words: tuple[Word, ...], takes: Takes) -> tuple[Word, ...]:
    at = 1
    while at < len(words):
        given = words[at].value
        if given is None:
            raise Opaque(f"'{words[at].source}' stands where '{name}' has its options")
        if given == "--":
            at += 1
            break
        if not given.startswith("-") or given == "-":
            break
        at += 1 + takes_next(name, given, takes)
    if any(word.value is None for word in words[at : at + takes.skips]):
        raise Opaque(f"an argument of '{name}' is known only when it runs")
    return words[at + takes.skips :]


def takes_next(name: str, given: str, takes: Takes) -> bool:
    """Whether the next word is the value of this option."""
    if given.startswith("--"):
        option, equals, _ = given[2:].partition("=")
        if option in takes.long or (option in takes.long_valued and equals):
            return False
        if option in takes.long_valued:
            return True
        raise Opaque(f"the option '{given}' of '{name}' is not known here")
    if name == "nice" and given[1:].isdigit():
        return False
    for place, letter in enumerate(given[1:], 2):
        if letter in takes.valued:
            return place == len(given)
        if letter not in takes.flags:
            raise Opaque(f"the option '{given}' of '{name}' is not known here")
    return False


def assignments(
    words: tuple[Word, ...],
) -> tuple[tuple[tuple[str, Word], ...], tuple[Word, ...]]:
    """The `NAME=value` words in front of a command."""
    found: list[tuple[str, Word]] = []
    for at, word in enumerate(words):
        name, equals, _ = word.source.partition("=")
        if not (equals and name.isidentifier()):
            return tuple(found), words[at:]
        value = None if word.value is None else word.value.partition("=")[2]
        found.append((name, Word(word.source.partition("=")[2], value)))
    return tuple(found), ()


def in_shell(simple: Simple) -> Inner | None:
    """`bash -c 'text'`, `bash script`, or text on the input."""
    words, at, command, stdin = simple.words, 1, False, False
    while at < len(words):
        given = words[at].value
        if given is None:
            raise Opaque(f"'{words[at].source}' is known only when the shell starts")
        if given in ("--norc", "--noprofile", "--login", "--posix", "--version", "--help"):
            at += 1
            continue
        if given == "--" or given[:1] not in ("-", "+") or len(given) < 2:
            at += given in ("--", "-")
            break
        if given.startswith("--"):
            raise Opaque(f"the option '{given}' of a shell is not known here")
        command, stdin = command or "c" in given[1:], stdin or "s" in given[1:]
        at += 1 + given[1:].count("o") + given[1:].count("O")
    operands = words[at:]
    if operands and not command and STDIN.match(operands[0].value or ""):
        raise Opaque(f"a shell reads '{operands[0].source}', which is its input")
    if command:
        return Inner(texts=(known_text(operands[:1]),)) if operands else None
    if operands and not stdin:
        return None
    if simple.document is not None:
        return Inner(texts=(known_text((simple.document,)),))
    return None


def known_text(words: tuple[Word, ...]) -> str:
    values = [word.value for word in words if word.value is not None]
    if len(values) < len(words):
        raise Opaque("a shell is given text that is known only when it runs")
    return " ".join(values)


def evaluated(words: tuple[Word, ...]) -> Inner | None:
    rest = words[2:] if words[1:] and words[1].value == "--" else words[1:]
    return Inner(texts=(known_text(rest),)) if rest else None


def trapped(words: tuple[Word, ...]) -> Inner | None:
    operands = [word for word in words[1:] if word.value is None or not word.value.startswith("-")]
    return Inner(texts=(known_text((operands[0],)),)) if len(operands) > 1 else None


def sourced(words: tuple[Word, ...]) -> Inner | None:
    if STDIN.match(known_text(words[1:2])) or known_text(words[1:2]) == "--":
        raise Opaque(f"'{words[0].source}' reads its input")
    return None


def as_user(words: tuple[Word, ...]) -> Inner | None:
    """`su -c 'text' user`"""
    for at, word in enumerate(words[1:-1], 1):
        if word.value in ("-c", "--command", "-lc"):
            return Inner(texts=(known_text((words[at + 1],)),), why=OTHER_USER)
    return Inner(why=OTHER_USER)


def watched(words: tuple[Word, ...]) -> Inner | None:
    takes = Takes("bcdegptwx", "n", ("color", "differences"), ("interval",))
    rest = after_options("watch", words, takes)
    return Inner(texts=(known_text(rest),)) if rest else None


def aliased(words: tuple[Word, ...]) -> Inner | None:
    if any("=" in word.source for word in words[1:]):
        raise Opaque("it gives a command another name")
    return None


def declared(words: tuple[Word, ...]) -> Inner | None:
    """With `-i` and `-n` a value is calculated, or is a name; either may hold a command."""
    for word in words[1:]:
        if word.value is None and not word.source.partition("=")[0].isidentifier():
            raise Opaque(f"'{word.source}' is known only when it runs")
        if (word.value or "").startswith(("-", "+")) and set(word.value or "") & set("in"):
            raise Opaque(f"what '{words[0].source}' assigns may be a command")
    return None


def assigning(words: tuple[Word, ...]) -> Inner | None:
    """A variable that is named only when it runs may be a command."""
    name = words[0].value
    if name == "printf" and not any((w.value or "-v").startswith("-v") for w in words[1:2]):
        counts = re.search(r"%[-#+ 0']*[\d.*]*n", (words[1].value or "") if words[1:] else "")
        if counts is None:
            return None
        raise Opaque("'printf' assigns to a variable")
    for word in words[1:]:
        if word.value is None or (name in ("mapfile", "readarray") and "-C" in word.value):
            raise Opaque(f"what '{name}' does is known only when it runs")
    return None


def hashed(words: tuple[Word, ...]) -> Inner | None:
    if any(word.value is None or word.value.startswith("-p") for word in words[1:]):
        raise Opaque("it gives a command another name")
    return None


def found_files(words: tuple[Word, ...]) -> Inner | None:
    """`find ... -exec command {} ;`, as often as it is there."""
    commands: list[tuple[Word, ...]] = []
    current: list[Word] | None = None
    for word in words[1:]:
        if current is None:
            if word.value in ("-exec", "-execdir", "-ok", "-okdir"):
                current = []
        elif word.value == ";" or (word.value == "+" and current[-1:] == [UNKNOWN]):
            commands.append(tuple(current))
            current = None
        else:
            current.append(file_found(word))
    if current:
        commands.append(tuple(current))
    return Inner(tuple(command for command in commands if command)) if commands else None


def file_found(word: Word) -> Word:
    """`{}` stands for a file, wherever it is in a word."""
    return UNKNOWN if word.value is not None and "{}" in word.value else word


OPAQUE = frozenset(
    """parallel script let compgen complete enable bind prlimit chrt numactl systemd-run nsenter
    setpriv capsh firejail proot fakeroot unbuffer expect entr rlwrap cpulimit faketime ltrace
    valgrind perf gdb at batch ssh-agent start-stop-daemon dbus-run-session""".split()
)
"""Programs and builtins that run others, in ways that are not looked into."""
SPECIAL: dict[str, Callable[[tuple[Word, ...]], Inner | None]] = {
    "eval": evaluated,
    "trap": trapped,
    "source": sourced,
    ".": sourced,
    "su": as_user,
    "runuser": as_user,
    "watch": watched,
    "alias": aliased,
    "hash": hashed,
    "declare": declared,
    "typeset": declared,
    "local": declared,
    "export": declared,
    "readonly": declared,
    "printf": assigning,
    "read": assigning,
    "mapfile": assigning,
    "readarray": assigning,
    "unset": assigning,
    "getopts": assigning,
    "find": found_files,
}
