"""Undo: the files that a run changed become what they were. Part of the session like all else: what
was there is kept first, the log says what was taken back, and the model is told.
"""

from collections.abc import Iterable
from pathlib import Path

from holdfast.core.events import (
    Event,
    FileKept,
    FilesRestored,
    FollowedUp,
    RunStopped,
    ToolFinished,
    UserSpoke,
)
from holdfast.core.messages import ToolCall
from holdfast.journal.base import Stored
from holdfast.runtime.driver import Driver
from holdfast.runtime.hand import Hand
from holdfast.tools.undo import Restored, plan_restore, restore
from holdfast.tools.workspace import Workspace

BY_UNDO = ToolCall("undo", "undo", "{}")
"""Stands where a call would: what an undo keeps was changed by no call."""


async def undo(driver: Driver, *, runs: int = 1, force: bool = False) -> tuple[Restored, ...]:
    """Take back what the last runs did to files. A file that somebody else changed since is left
    alone and reported, unless `force` is set."""
    if runs < 1:
        raise ValueError(f"runs is {runs}; at least the last one is taken back")
    if driver.is_working:
        raise RuntimeError(f"session {driver.id} is at work: cancel its run before taking it back")
    events = [stored.event for stored in since(runs, await driver.log())]
    kept = [
        event for event in events if isinstance(event, FileKept) and event.call_id != BY_UNDO.id
    ]
    restored = await restore(
        plan_restore(kept, ends(events, driver.workspace)),
        Workspace(driver.workspace),
        driver.blob,
        keep=Hand(driver, BY_UNDO).keep,
        force=force,
    )
    done = [each.path for each in restored if each.is_done]
    if paths := tuple(shown(path, driver.workspace) for path in done):
        await driver.record(FilesRestored(paths, driver.now()), durable=True)
    return restored


def ends(events: Iterable[Event], workspace: Path) -> dict[str, float]:
    """When each call had made its last change: at its end, or when that was taken back."""
    ends: dict[str, float] = {}
    last: dict[str, str] = {}
    for event in events:
        match event:
            case FileKept(call_id, path) if call_id != BY_UNDO.id:
                last[shown(Path(path), workspace)] = call_id
            case ToolFinished(call_id):
                ends[call_id] = event.at
            case FilesRestored(paths):
                ends |= {last[path]: event.at for path in paths if path in last}
    return ends


def shown(path: Path, workspace: Path) -> str:
    """As the model knows it."""
    return str(path.relative_to(workspace)) if path.is_relative_to(workspace) else str(path)


def since(runs: int, log: Iterable[Stored]) -> list[Stored]:
    """The events of the last so many runs, and what came after them."""
    events = list(log)
    begins: list[int] = []
    running = False
    for place, stored in enumerate(events):
        match stored.event:
            case UserSpoke() if not running:
                begins.append(place)
                running = True
            case FollowedUp():
                begins.append(place)
                running = True
            case RunStopped():
                running = False
    return events[begins[-runs] :] if 0 < runs <= len(begins) else events
