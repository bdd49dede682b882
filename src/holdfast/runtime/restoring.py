"""Undo: the files that a run changed become what they were. Part of the session like all else: what
was there is kept first, the log says what was taken back, and the model is told.
"""

from collections.abc import Iterable

from holdfast.core.events import (
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
    if driver.is_working:
        raise RuntimeError(f"session {driver.id} is at work: cancel its run before taking it back")
    events = since(runs, await driver.log())
    kept = [
        each.event
        for each in events
        if isinstance(each.event, FileKept) and each.event.call_id != BY_UNDO.id
    ]
    finished = {
        each.event.call_id: each.event.at for each in events if isinstance(each.event, ToolFinished)
    }
    restored = await restore(
        plan_restore(kept, finished),
        Workspace(driver.workspace),
        driver.blob,
        keep=Hand(driver, BY_UNDO).keep,
        force=force,
    )
    if paths := tuple(str(each.path) for each in restored if each.is_done):
        await driver.record(FilesRestored(paths, driver.now()), durable=True)
    return restored


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
