"""The patterns that are offered with a question, for a yes that lasts: as narrow as they are useful.

What is offered is taken without much thought, so a wildcard is offered only for commands of which it
is known that no arguments make them do something else. Which rule becomes of it is `permissions`.
"""

import re

from holdfast.tools.bash.powers import more_than_asked
from holdfast.tools.patterns import address, escaped, is_one_command

OFFERED = {
    "git": ("status", "diff", "log", "show", "add", "commit", "blame", "rev-parse", "ls-files"),
    "npm": ("test", "run"),
    "pnpm": ("test", "run"),
    "yarn": ("test", "run"),
    "cargo": ("build", "check", "test", "clippy", "fmt"),
    "go": ("build", "test", "vet"),
    "ruff": ("check", "format"),
    "pytest": (),
    "mypy": (),
    "mkdir": (),
    "touch": (),
}
"""Programs, and what they may be told to do. Tests and builds run the project's own code, and are
offered for that. Commands that look at files are not here: inside the workspace they run unasked, and
nobody should allow them for the whole disk by accident."""
PLAIN_WORD = re.compile(r"[A-Za-z][\w.:+-]*")


def command_pattern(command: str) -> str:
    """A command that is known, with any arguments; else the very command."""
    head = known_head(command.split())
    if head and is_one_command(command) and not more_than_asked(command):
        return f"{head} *"
    return escaped(command.strip())


def known_head(words: list[str]) -> str:
    steps = OFFERED.get(words[0]) if words else None
    if steps is None:
        return ""
    if not steps:
        return words[0]
    if len(words) < 2 or words[1] not in steps:
        return ""
    if words[1] != "run":
        return " ".join(words[:2])
    # Here the third word says what is done.
    return " ".join(words[:3]) if len(words) > 2 and PLAIN_WORD.fullmatch(words[2]) else ""


def host_pattern(subject: str) -> str:
    parts = address(subject)
    return escaped(parts.hostname if parts and parts.hostname else subject)


def folder_pattern(paths: tuple[str, ...]) -> str:
    """The folder that holds them all; of the workspace itself only the one file."""
    folders = [path.split("/")[:-1] for path in paths]
    common = []
    for names in zip(*folders, strict=False):
        if len(set(names)) > 1:
            break
        common.append(names[0])
    if any(common):
        return f"{escaped('/'.join(common))}/**"
    return escaped(paths[0]) if len(set(paths)) == 1 else ""
