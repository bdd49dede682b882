"""Taking back what tools did to files, from the copies that were kept before each change.

Only files that a tool of ours changed are touched, and only those of one session: what a command
did is not known here. What is there now is kept first, so taking back can be taken back as well.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import anyio.to_thread

from holdfast.core.events import FileKept
from holdfast.tools.base import ToolError
from holdfast.tools.disk import Stamp, in_words, removed, replaced, whole
from holdfast.tools.workspace import Place, Workspace

LARGEST = 1 << 30
"""Bytes of a file that is compared with its copy."""


@dataclass(frozen=True, slots=True)
class Step:
    """A file, and what it was."""

    path: Path
    blob: str
    """Where the journal keeps what was in it; empty if there was no such file."""
    mode: int
    done: float | None
    """When our last change to it was over; None if that is not known."""


class Fate(Enum):
    RESTORED = "restored"
    REMOVED = "removed"
    """There was no such file before, so there is none now."""
    SAME = "already as it was"
    CHANGED = "left alone: changed since by somebody else"
    OUTSIDE = "left alone: outside the workspace"
    FAILED = "could not be restored"


@dataclass(frozen=True, slots=True)
class Restored:
    """What became of one file."""

    path: Path
    fate: Fate
    detail: str = ""

    @property
    def is_done(self) -> bool:
        return self.fate in (Fate.RESTORED, Fate.REMOVED)


def plan_restore(
    kept: Sequence[FileKept], finished: Mapping[str, float] | None = None
) -> tuple[Step, ...]:
    """What each file was before the first of these changes, in the order they were made.

    `finished` says when calls ended. Whatever changed a file later than that was not us.
    """
    oldest: dict[str, FileKept] = {}
    newest: dict[str, FileKept] = {}
    for one in kept:
        oldest.setdefault(one.path, one)
        newest[one.path] = one
    ends = finished or {}
    return tuple(
        Step(Path(path), first.blob, first.mode, ends.get(newest[path].call_id))
        for path, first in oldest.items()
    )


async def restore(
    steps: Sequence[Step],
    workspace: Workspace,
    blob: Callable[[str], Awaitable[bytes]],
    *,
    keep: Callable[[Path], Awaitable[None]],
    force: bool = False,
) -> tuple[Restored, ...]:
    """Make the files what they were, each of them whole or not at all.

    One that somebody else changed since, or that is outside the workspace, is left alone and
    reported, unless `force` is set. One that cannot be restored does not keep the others.
    """
    return tuple([await restored(step, workspace, blob, keep, force=force) for step in steps])


async def restored(
    step: Step,
    workspace: Workspace,
    blob: Callable[[str], Awaitable[bytes]],
    keep: Callable[[Path], Awaitable[None]],
    *,
    force: bool,
) -> Restored:
    try:
        before = await blob(step.blob) if step.blob else None
    except Exception as wrong:  # whatever the journal raises: the other files have their copies
        return Restored(step.path, Fate.FAILED, f"its copy cannot be read: {wrong}")
    try:
        place, now, fate = await anyio.to_thread.run_sync(look, step, workspace, before, force)
        if fate is not None:
            return Restored(step.path, fate)
        await keep(place.real)
        done = await anyio.to_thread.run_sync(carry_out, step, place, before, now)
    except ToolError as wrong:
        return Restored(step.path, Fate.FAILED, str(wrong))
    return Restored(step.path, done)


Now = tuple[bytes, Stamp] | None
"""What is there; None if nothing is."""


def look(
    step: Step, workspace: Workspace, before: bytes | None, force: bool
) -> tuple[Place, Now, Fate | None]:
    """Where it is, what is there, and what becomes of it if it is not to be touched."""
    place = workspace.place(str(step.path))
    if not place.explicit:
        raise ToolError(f"A symlink leads {step.path} to {place.real} now.")
    now = found_at(place)
    if not place.inside and not force:
        return place, now, Fate.OUTSIDE
    if (now and now[0]) == before and (now is None or is_mode(now[1], step)):
        return place, now, Fate.SAME
    if now is not None and not force and is_newer(now[1], step.done):
        return place, now, Fate.CHANGED
    return place, now, None


def is_mode(stamp: Stamp, step: Step) -> bool:
    return not step.mode or stamp.mode == step.mode


def is_newer(stamp: Stamp, done: float | None) -> bool:
    """Without a known end of our own change, it might be: then it counts as newer."""
    return done is None or stamp.changed > done * 1e9


def carry_out(step: Step, place: Place, before: bytes | None, now: Now) -> Fate:
    if found_at(place) != now:
        return Fate.CHANGED  # in this very moment, and after it was kept
    try:
        if before is None:
            removed(place)
            return Fate.REMOVED
        replaced(place, before, step.mode or None)
    except OSError as wrong:
        raise in_words(wrong, place) from wrong
    return Fate.RESTORED


def found_at(place: Place) -> Now:
    try:
        return whole(place, LARGEST)
    except NotADirectoryError:
        return None
    except OSError as wrong:
        raise in_words(wrong, place) from wrong
