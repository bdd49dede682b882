"""What a shell command would do, as far as that can be known before it runs.

`bash` tells which simple commands are in it, `dangers` which of them destroy, `reading` which only
read: that is said of plain lines alone, and only if two ways to read them agree. Here wrappers are taken off (`sudo`, `env`, `xargs`, `bash -c`, ...), and it is all put together.
Whatever is not certain is a danger, since a danger only means that a person is asked.

What programs do with their arguments is not known here: `python -c`, `make`, and SQL that is handed
to a database are commands like any other.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from holdfast.tools.bash import git
from holdfast.tools.bash.dangers import destroys
from holdfast.tools.bash.options import file_name
from holdfast.tools.bash.plain import plain
from holdfast.tools.bash.reading import BUILTINS, only_reads
from holdfast.tools.bash.syntax import Redirect, Simple, read
from holdfast.tools.bash.targets import replaced, written
from holdfast.tools.bash.words import UNKNOWN, Unreadable, Word
from holdfast.tools.bash.wrappers import SHELLS, STDIN, TRANSPARENT, Opaque, inner

DEEPEST = 8
"""Commands in the arguments of commands in the arguments of commands."""
HARMLESS = {
    "CI", "COLUMNS", "DEBUG", "FORCE_COLOR", "LANG", "LANGUAGE", "LC_ALL", "LINES", "NODE_ENV",
    "NO_COLOR", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "RUST_BACKTRACE", "RUST_LOG",
    "TERM", "TZ",
}  # fmt: skip
"""Variables that change how programs talk, not what they run."""
PROGRAMS = {"/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin"}
RESERVED = {
    "!", "{", "}", "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done",
    "case", "esac", "in", "select", "function", "[[", "]]",
}  # fmt: skip
CONNECTS = re.compile(r"/dev/(tcp|udp)/")
"""Files that are none: bash opens a connection."""
STREAMS = {"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "-"}
INTERPRETERS = {"python", "python3", "perl", "ruby", "node", "php", "osascript", "pwsh", "lua"}


@dataclass(frozen=True, slots=True)
class Commands:
    parts: tuple[str, ...]
    """The simple commands, each as text for rules such as `git diff *`. Never empty."""
    dangers: tuple[str, ...] = ()
    """Why a person must be asked. Something that was not understood is one."""
    reads_only: bool = False
    writes: tuple[str, ...] = ()
    """Files that are surely written, as far as they are named."""
    parsed: bool = True
    replaces: tuple[str, ...] = ()
    """Files whose content is gone afterwards, should they exist now."""
    enters: tuple[str, ...] = ()
    """Folders it goes into: names may be meant from there."""
    names: tuple[str, ...] = ()
    """Every argument, since each may name a file."""
    programs: tuple[str, ...] = ()
    """What a command that only reads starts, save what bash is itself."""
    globs: tuple[str, ...] = ()
    """The patterns of files in a command that only reads."""


@dataclass(slots=True)
class Found:
    """What was found so far."""

    parts: list[str] = field(default_factory=list)
    dangers: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    replaces: list[str] = field(default_factory=list)
    enters: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    seen: list[tuple[str | None, ...]] = field(default_factory=list)
    """The words of the commands that stand in the line itself."""
    parsed: bool = True

    def not_understood(self, why: str) -> None:
        self.dangers.append(f"It cannot be said what it would do: {why}.")
        self.parsed = False


@lru_cache(maxsize=64)
def analysed(command: str) -> Commands:
    """What is known of a command before it runs."""
    found = Found()
    look(command, found, depth=0)
    if not found.parts:
        found.parts.append(command.strip())
    line = plain_reads(command, found)
    words = [word for one in line for word in one]
    return Commands(
        parts=unique(found.parts),
        dangers=unique(found.dangers),
        reads_only=bool(line),
        writes=unique(found.writes),
        parsed=found.parsed,
        replaces=unique(found.replaces),
        enters=unique(found.enters),
        names=unique(found.names),
        programs=unique([one[0].source for one in line if one[0].source not in BUILTINS]),
        globs=unique([word.source for word in words if word.globs]),
    )


def plain_reads(command: str, found: Found) -> tuple[tuple[Word, ...], ...]:
    """The commands of a line that only reads; none if it may do more."""
    line = None if found.dangers or found.writes or not found.parsed else plain(command)
    if line is None or not only_reads(line):
        return ()
    words = [tuple(word.value for word in one) for one in line.commands]
    closed = [one[:-1] if one[0] == "[" and one[-1] == "]" else one for one in words]
    return line.commands if closed == found.seen else ()


def look(command: str, found: Found, *, depth: int) -> None:
    if depth > DEEPEST:
        found.parts.append(command.strip())
        found.not_understood("commands are hidden in commands too deeply")
        return
    try:
        line = read(command)
    except Unreadable as wrong:
        found.parts.append(command.strip())
        found.not_understood(str(wrong))
        return
    for name in line.bombs:
        found.dangers.append(f"The function '{name}' starts itself over and over.")
    if depth == 0:
        found.seen = [tuple(word.value for word in simple.words) for simple in line.simples]
    for simple in line.simples:
        weigh(simple, found, depth=depth)


def weigh(simple: Simple, found: Found, *, depth: int) -> None:
    """One simple command: its redirections, its assignments, and what it runs."""
    for redirect in simple.redirects:
        redirected(redirect, found)
    harmless = is_harmless if simple.words else is_own
    obeyed = [(name, value) for name, value in simple.assigned if not harmless(name)]
    if any(name.startswith("GIT_CONFIG") for name, _ in obeyed):
        found.dangers.append("It is given settings that may change what git runs, or throws away.")
    if obeyed:
        # Allowing `git diff` must not allow `GIT_EXTERNAL_DIFF=... git diff`.
        text = " ".join(f"{name}={shown(value)}" for name, value in obeyed)
        found.parts.append(" ".join([text, *map(shown, simple.words)]).strip())
    if not simple.words:
        return
    runs(simple, found, depth=depth)


def runs(simple: Simple, found: Found, *, depth: int) -> None:
    """The command itself, and the one inside it if it is a wrapper."""
    if depth > DEEPEST:
        found.not_understood("commands are hidden in commands too deeply")
        return
    first = simple.words[0]
    if first.value is None or first.globs or not first.value:
        found.parts.append(part(simple.words))
        found.not_understood(f"the command '{first.source}' is known only when it runs")
        return
    if first.value.startswith("-") or "=" in first.value:
        # `env - rm x`, `time a=b rm x`: there is more in front of the command than is known here.
        found.parts.append(part(simple.words))
        found.not_understood(f"'{first.value}' stands where a command should")
        return
    if first.value in RESERVED:
        # `! { a; }` and `time if ...`: the grammar takes the word for a command, bash does not.
        found.parts.append(part(simple.words))
        found.not_understood(f"'{first.value}' stands where a command should")
        return
    name = file_name(first.value)
    try:
        within = inner(name, simple)
    except Opaque as wrong:
        found.parts.append(part(simple.words))
        found.not_understood(str(wrong))
        return
    if within is None or name not in TRANSPARENT or not is_of_the_system(first.value):
        outermost(name, simple, found)
    if within is None:
        return
    if within.why:
        found.dangers.append(within.why)
    for text in within.texts:
        look(text, found, depth=depth + 1)
    for words in within.commands:
        weigh(
            Simple(words, within.assigned, (), simple.fed, simple.document), found, depth=depth + 1
        )


def outermost(name: str, simple: Simple, found: Found) -> None:
    """What a command does by itself, whatever it runs."""
    words = simple.words
    found.parts.extend(texts_of(name, words))
    found.names.extend(word.value for word in words[1:] if word.value is not None)
    found.dangers.extend(destroys(name, words))
    found.writes.extend(file for file in written(name, words) if file not in STREAMS)
    for file in replaced(name, words):
        if file is None:
            found.dangers.append(
                f"'{part(words)}' replaces files that are known only when it runs."
            )
        elif file not in STREAMS:
            found.replaces.append(file)
    if name in ("cd", "pushd"):
        found.enters.extend(entered(words, found))
    if simple.fed and name in INTERPRETERS | SHELLS and reads_program(name, words):
        found.dangers.append(f"'{name}' runs whatever another command writes.")


def reads_program(name: str, words: tuple[Word, ...]) -> bool:
    """Whether an interpreter takes its program from its input."""
    operands = [word.source for word in words[1:] if not word.source.startswith("-")]
    if operands and STDIN.match(operands[0]):
        return True
    options = [word.source for word in words[1:] if word.source.startswith("-")]
    if name in SHELLS:
        short = "".join(option[1:] for option in options if not option.startswith("--"))
        return "s" in short or not operands
    given = any(option[:2] in ("-c", "-e", "-m", "-E", "-n", "-p", "-r") for option in options)
    asked = any(option in ("-V", "--version", "-h", "--help") for option in options)
    return "-" in options or not (operands or given or asked)


def entered(words: tuple[Word, ...], found: Found) -> Iterator[str]:
    operands = [word for word in words[1:] if not word.source.startswith("-")]
    if any(word.value is None for word in operands):
        found.dangers.append("It goes into a folder that is known only when it runs.")
    yield from (word.value for word in operands if word.value is not None)
    if not operands and file_name(words[0].value or "") == "cd":
        yield "~"


def redirected(redirect: Redirect, found: Found) -> None:
    target = redirect.target
    if CONNECTS.match(target.value or ""):
        found.dangers.append(f"It opens a connection, {target.value}.")
        return
    if redirect.operator in ("<", "<&"):
        if target.value is not None and redirect.operator == "<":
            found.names.append(target.value)
        return
    if redirect.operator in (">&", "<&") and (target.value or "x").rstrip("-").isdigit():
        return
    if target.value is None or target.globs:
        found.dangers.append(f"It writes to '{target.source}', which is known only when it runs.")
        return
    if target.value in STREAMS:
        return
    # Allowing `echo *` must not allow writing whatever file it is sent to.
    found.parts.append(f"{redirect.operator} {shown(target)}")
    found.writes.append(target.value)
    if redirect.operator not in (">>", "&>>"):
        found.replaces.append(target.value)


def texts_of(name: str, words: tuple[Word, ...]) -> Iterator[str]:
    """A command as the text that rules are held against.

    The folder of a program is left out, so that a rule against `rm` also meets `/bin/rm`; but
    `./git` is not `git`, so a program from elsewhere is also told as it was written.
    """
    first = words[0].value or ""
    named = Word(name, name)
    before, given = git.command_of(words[1:]) if name == "git" else ((), words[1:])
    yield part((named, *given))
    if not is_of_the_system(first):
        yield part(words)
    elif any(word.value not in git.QUIET for word in before):
        yield part((named, *words[1:]))


def is_of_the_system(command: str) -> bool:
    """Found by its name alone, or where the system keeps its programs."""
    return "/" not in command or command.rpartition("/")[0] in PROGRAMS


def part(words: tuple[Word, ...]) -> str:
    return " ".join(map(shown, words))


def shown(word: Word) -> str:
    if word is UNKNOWN or word.value is None or word.globs:
        return word.source
    return word.value if word.value == "[" else shlex.quote(word.value)


def is_harmless(name: str) -> bool:
    """A variable that no program obeys, so that it may be set for one."""
    return name in HARMLESS


def is_own(name: str) -> bool:
    """A variable of the line's own: those that programs obey have capitals or a `_` in them."""
    return name in HARMLESS or (name.islower() and name.isalnum())


def unique(values: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))
