"""What the pattern of a rule matches: paths, addresses and commands, each read in its own way.

There are two wildcards. `*` stands for any text; in a path not across `/`, in an address not
beyond its part, in a command only while it stays one command. `**` between slashes stands for any
number of folders. `\\` before a character takes it as it is. A last ` *` stands for any arguments
or none: `git diff *` is `git diff` too, and never `git difftool`.

Who allows something is read narrowly, who forbids it widely. So a pattern that forbids also
crosses slashes, does not care for upper and lower case in paths, and finds a command behind
`sudo` or a variable, as `commands` does. What rules there are and which of them wins is `permissions`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from posixpath import normpath
from urllib.parse import SplitResult, urlsplit

from holdfast.tools.base import Access
from holdfast.tools.bash.powers import more_than_asked

WILD = re.compile(r"\\(.)|(\*+)", re.DOTALL)
QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\`$]|\\.|\$(?!\())*\"|\\.", re.DOTALL)
"""What a shell takes as one piece of text. In double quotes it still runs `$(…)` and backticks."""
HARMLESS = re.compile(r"(?<!\S)[12]?>>?\s*(?:&[12]|/dev/null)(?!\S)")
UNCERTAIN = re.compile(r"\$['\"]|(?<!\S)#")
"""What changes which quotes count: `$'…'`, and comments. Nobody need allow such a command unseen."""
SEVERAL = re.compile(r"[;&|<>`\n\r\0]|\$\(|\(\s*\)\s*\{")
"""Outside quotes: more than one command, or one that writes somewhere."""


class Kind(Enum):
    """What the subjects of a call are."""

    PATH = "path"
    ADDRESS = "address"
    COMMAND = "command"


KINDS = {Access.NETWORK: Kind.ADDRESS, Access.EXECUTE: Kind.COMMAND}


def kind_of(access: Access) -> Kind:
    return KINDS.get(access, Kind.PATH)


@dataclass(frozen=True, slots=True)
class Pattern:
    text: str

    @property
    def exact(self) -> bool:
        """It has no wildcard, so it names one thing."""
        return len(pieces(self.text)) == 1

    def covers(self, subject: str, kind: Kind) -> bool:
        """Read narrowly: what an allowing rule allows."""
        match kind:
            case Kind.PATH:
                return narrow_path(self.text, subject)
            case Kind.ADDRESS:
                return narrow_address(self.text, subject)
            case Kind.COMMAND:
                return narrow_command(self, subject.strip())

    def hits(self, subject: str, kind: Kind) -> bool:
        """Read widely: what a forbidding rule forbids. Everything it covers, and more."""
        wanted, given = self.text, subject
        if kind is not Kind.COMMAND:
            wanted, given = wanted.casefold(), given.casefold()
        forms = wide_commands(given) if kind is Kind.COMMAND else wide_paths(given, wanted)
        return (
            any(glob(wanted, form) for form in forms)
            or in_folders(wanted, normal(given))
            or self.covers(subject, kind)
        )


# --- text -----------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def pieces(pattern: str) -> tuple[str, ...]:
    """The texts between the wildcards."""
    found: list[str] = []
    begin, text = 0, ""
    for mark in WILD.finditer(pattern):
        text += pattern[begin : mark.start()]
        begin = mark.end()
        if mark[1] is not None:
            text += mark[1]
        else:
            found.append(text)
            text = ""
    return (*found, text + pattern[begin:])


def glob(pattern: str, text: str) -> bool:
    """`*` and `**` are any text. Takes the time of one look through the text for each wildcard."""
    if pattern.endswith(" *") and glob(pattern[:-2], text):
        return True
    first, *rest = pieces(pattern)
    if not rest:
        return text == first
    *middle, last = rest
    place, end = len(first), len(text) - len(last)
    if place > end or not text.startswith(first) or not text.endswith(last):
        return False
    for piece in middle:
        place = text.find(piece, place, end)
        if place < 0:
            return False
        place += len(piece)
    return True


def escaped(text: str) -> str:
    """A pattern that names exactly this."""
    return re.sub(r"([\\*])", r"\\\1", text)


# --- paths ----------------------------------------------------------------------------------


def normal(path: str) -> str:
    return normpath(path.replace("\\", "/")) if path else path


def narrow_path(pattern: str, subject: str) -> bool:
    """A pattern for the workspace never reaches what is outside of it."""
    path = normpath(subject) if subject else subject
    pattern = pattern.removeprefix("./")
    if path.startswith("/") != pattern.startswith("/"):
        return False
    return ".." not in path.split("/") and segments_match(pattern.split("/"), path.split("/"))


def in_folders(pattern: str, path: str) -> bool:
    """With the folder itself: `src/**` forbids to remove `src`."""
    wanted, given = pattern.split("/"), path.split("/")
    return segments_match(wanted, given) or (
        wanted[-1] == "**" and segments_match(wanted[:-1], given)
    )


def segments_match(wanted: list[str], given: list[str]) -> bool:
    """`reached[i]`: the first i names are matched by the wanted ones so far."""
    reached = [True] + [False] * len(given)
    for place, name in enumerate(wanted):
        if name == "**" and place == len(wanted) - 1:
            return any(reached[:-1])  # what is inside, not the folder itself
        if name == "**":
            first = reached.index(True) if True in reached else len(reached)
            reached = [i >= first for i in range(len(reached))]
        else:
            steps = (reached[i] and glob_name(name, one) for i, one in enumerate(given))
            reached = [False, *steps]
    return reached[-1]


def glob_name(pattern: str, name: str) -> bool:
    """A name is not a command: a last ` *` is a space and any text."""
    return glob(pattern, name) and not (pattern.endswith(" *") and name == pattern[:-2])


def wide_paths(subject: str, pattern: str) -> Iterator[str]:
    yield subject
    yield " ".join(subject.split())
    yield normal(subject)
    if "/" not in pattern:
        yield normal(subject).rsplit("/", 1)[-1]  # `.env` forbids every `.env`
        if "://" in subject and (parts := address(subject)):
            yield parts.hostname or ""


# --- addresses ------------------------------------------------------------------------------


def address(text: str) -> SplitResult | None:
    try:
        parts = urlsplit(text)
        _ = parts.port  # raises, like everything here, for an address that is none
    except ValueError:
        return None
    return parts


def narrow_address(pattern: str, subject: str) -> bool:
    """A wildcard stays in its part: `https://*.example.org/**` is never `https://evil.net/#.…`."""
    scheme, apart, rest = pattern.partition("://")
    if "://" not in subject:
        return glob(pattern, subject) and not re.search(r"[/?#@\\\s]", subject)
    parts = address(subject)
    if parts is None or "@" in parts.netloc or re.search(r"[\\\s]", subject):
        return False
    if not apart:  # a host alone
        return glob(pattern, parts.hostname or "")
    host, _, path = rest.partition("/")
    names = f"{parts.path}?{parts.query}" if parts.query else parts.path
    given = names.lstrip("/").split("/")
    climbs = any(name.lower().replace("%2e", ".") == ".." for name in given)
    return (
        glob(scheme, parts.scheme)
        and glob(host, parts.netloc.lower())
        and not climbs
        and segments_match(path.split("/"), given)
    )


# --- commands -------------------------------------------------------------------------------


def is_one_command(text: str) -> bool:
    """One program with its arguments: nothing after it, nothing inside it, nothing written."""
    if UNCERTAIN.search(text):
        return False
    return SEVERAL.search(HARMLESS.sub("", QUOTED.sub("_", text))) is None


def narrow_command(pattern: Pattern, command: str) -> bool:
    """A wildcard is one command's arguments, and never an option that writes or runs something."""
    if pattern.exact:
        return glob(pattern.text, command)
    if not is_one_command(command) or not glob(pattern.text, command):
        return False
    return set(more_than_asked(command)) <= set(pattern.text.split())


def wide_commands(command: str) -> Iterator[str]:
    """A command as it was written, and every command that is in it."""
    from holdfast.tools.commands import analysed

    yield command
    yield normal(command)
    yield " ".join(command.split())
    yield from analysed(command).parts
