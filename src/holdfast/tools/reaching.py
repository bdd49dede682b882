"""Where a command of the shell reaches: the files that its words name, from every folder it is in.

A path is taken in each way that it could be meant: with symlinks followed, as `cat` does, and with
`..` taken literally, as `cd` does. What cannot be told is outside. What the words are is told by
`commands`; here they meet the workspace.
"""

import glob
import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from holdfast.tools.base import Access, Arguments, Touch
from holdfast.tools.bash import git
from holdfast.tools.commands import Commands, analysed
from holdfast.tools.environment import is_of_the_system
from holdfast.tools.repository import is_plain
from holdfast.tools.workspace import GUARDED

MOST_MATCHES = 2_000
"""Files of one pattern that are looked at; a wider one is asked about."""
LONGEST = 4_000


def touch(arguments: Arguments, workspace: Path) -> Touch:
    command = analysed(str(arguments["command"]))
    root = workspace.resolve()
    base = base_of(arguments, root)
    dangers = [*command.dangers, *leaving(command, base, root)]
    if not base.is_relative_to(root):
        dangers.insert(0, f"It runs in {base}, which is outside the workspace.")
    reads = command.reads_only and not dangers and stays(command, base, root)
    return Touch(
        Access.READ if reads else Access.EXECUTE, command.parts, " ".join(dict.fromkeys(dangers))
    )


def changes_guarded(arguments: Arguments, workspace: Path) -> bool:
    """Whether the command says openly that it changes what decides about later commands: then a
    person was asked about just that."""
    command = analysed(str(arguments["command"]))
    root = workspace.resolve()
    base = base_of(arguments, root)
    told = any(one.endswith(LATER) for one in leaving(command, base, root))
    return told or any(git.LATER in one for one in command.dangers)


def base_of(arguments: Arguments, root: Path) -> Path:
    return placed(str(arguments.get("workdir") or "."), root)


LATER = "which decides what may run later."


def leaving(command: Commands, base: Path, root: Path) -> Iterator[str]:
    """What is wrong with the files that the command writes."""
    # After `cd` names are meant from another folder; which commands come after it is not asked.
    bases = [base]
    for folder in command.enters:
        places = set(meant(folder, base))
        if not all(place.is_relative_to(root) for place in places):
            yield f"It goes to {folder}, which is outside the workspace."
        bases += sorted(places)
    for name in command.writes:
        for place in (place for start in bases for place in meant(name, start)):
            if not place.is_relative_to(root):
                yield f"It writes to {name}, which is outside the workspace."
            elif GUARDED & {part.casefold() for part in place.relative_to(root).parts}:
                yield f"It writes to {name}, {LATER}"
    for name in command.replaces:
        if any(place.is_file() for start in bases for place in meant(name, start)):
            yield f"It replaces what is in {name}."


def stays(command: Commands, base: Path, root: Path) -> bool:
    """Whether a command that only reads does so in the workspace, with programs of the system."""
    if not all(is_of_the_system(program, os.environ) for program in command.programs):
        return False
    bases = [base, *(place for folder in command.enters for place in meant(folder, base))]
    if "git" in command.programs and not all(map(is_plain, bases)):
        return False
    for start in bases:
        if any(outside(name, start, root) for name in command.names):
            return False
        if any(matches_outside(pattern, start, root) for pattern in command.globs):
            return False
    return True


def placed(name: str, base: Path) -> Path:
    return (base / os.path.expanduser(name)).resolve()  # noqa: PTH111


def meant(name: str, base: Path) -> Iterator[Path]:
    """Where a name may lead: through symlinks, or not, and with `~` as a folder or as a name."""
    for written in dict.fromkeys((os.path.expanduser(name), name)):  # noqa: PTH111
        yield (base / written).resolve()
        yield Path(os.path.normpath(base / written))


def outside(word: str, base: Path, root: Path) -> bool:
    """Whether an argument names something outside: as it stands, behind `=`, or in `-xyzNAME`.

    What does not exist cannot be read.
    """
    names = {word, *(word[at + 1 :] for at, sign in enumerate(word) if sign in "=:")}
    if word.startswith("-"):
        names |= {word[at:] for at in range(2, min(len(word), 12))}
    for name in names:
        if not name or "\0" in name or len(name) > LONGEST:
            continue
        try:
            places = list(meant(name, base))
            if any(not one.is_relative_to(root) and os.path.lexists(one) for one in places):
                return True
        except (OSError, RuntimeError):
            return True
    return False


def matches_outside(pattern: str, base: Path, root: Path) -> bool:
    """Whether a pattern may match something outside: it starts there, or a symlink leads there."""
    if pattern[0] in "/~" or ".." in pattern or re.search(r"\[", pattern):
        return True
    found = glob.iglob(pattern, root_dir=base)  # noqa: PTH207  that of Path takes `**` otherwise
    matches = list(islice(found, MOST_MATCHES + 1))
    if len(matches) > MOST_MATCHES:
        return True
    return any(outside(match, base, root) for match in matches)
