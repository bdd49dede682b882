"""What whole runs are set up with, and what is asked of them afterwards."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import anyio

from holdfast.journal.sqlite import SqliteJournal
from holdfast.settings import Loaded, load
from holdfast.testing.server import ModelServer
from holdfast.testing.told import told
from holdfast.tools.toolbox import Toolbox

Mode = Literal["plan", "ask", "accept-edits", "auto", "deny"]


def name_of(server: ModelServer) -> str:
    return f"{server.url}/v1#test-model"


def settings(folder: Path, mode: Mode) -> Loaded:
    loaded = load(env={}, folder=folder, home=folder)
    return replace(loaded, values=replace(loaded.values, permission_mode=mode))


async def log_of(journal: SqliteJournal, session: str, width: int = 100) -> list[str]:
    return told([stored.event for stored in await journal.read(session)], width)


def results_in(server: ModelServer) -> list[str]:
    """The results of tools that the model was sent last."""
    messages = server.chats[-1].body["messages"]
    return [str(each["content"]) for each in messages if each["role"] == "tool"]


async def until_there(toolbox: Toolbox, name: str) -> None:
    """Until the toolbox has a tool of this name."""
    with anyio.fail_after(30):
        while True:
            changed = anyio.Event()
            unwatch = toolbox.watch(changed.set)
            try:
                if toolbox.get(name) is not None:
                    return
                await changed.wait()
            finally:
                unwatch()
