"""A door with nobody behind it but the test: a list of events, and answers prepared beforehand."""

import json
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

import anyio
import anyio.from_thread
import anyio.lowlevel

from holdfast.core.events import FromTheWorld
from holdfast.core.limits import Usage
from holdfast.core.messages import ToolCall
from holdfast.core.tools import SideEffect, ToolSpec
from holdfast.tools.base import (
    Access,
    Arguments,
    BadArguments,
    Context,
    Filled,
    Form,
    Left,
    Progress,
    Run,
    Tool,
    Touch,
)
from holdfast.tools.gateway import Answer, Question

NO = Answer(allowed=False)
YES = Answer(allowed=True)


@dataclass
class ListDoor:
    answers: list[Answer] = field(default_factory=list)
    granted: tuple[str, ...] = ()
    events: list[FromTheWorld] = field(default_factory=list)
    durable: list[FromTheWorld] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    blobs: list[bytes] = field(default_factory=list)
    progress: list[Progress] = field(default_factory=list)
    closed: bool = False
    recorded: anyio.Event = field(default_factory=anyio.Event)
    """Set by every event; replaced by whoever waits for the next."""

    def now(self) -> float:
        return 1.0

    async def record(self, event: FromTheWorld, *, durable: bool = False) -> None:
        if self.closed:
            raise RuntimeError("the session is closed")
        self.events.append(event)
        if durable:
            self.durable.append(event)
        self.recorded.set()

    async def ask(self, question: Question) -> Answer:
        self.questions.append(question)
        return self.answers.pop(0)

    async def keep_blob(self, data: bytes) -> str:
        self.blobs.append(data)
        return f"blob {len(self.blobs)}"

    def spawn(self, work: Callable[[], Coroutine[object, object, None]]) -> None:
        """In a task of the event loop that belongs to nobody: only another thread can start one."""
        token = anyio.lowlevel.current_token()

        def wait() -> None:
            with suppress(BaseException):  # the event loop may end first
                anyio.from_thread.run(work, token=token)

        Thread(target=copy_context().run, args=(wait,), daemon=True).start()

    def context(self, call: ToolCall, tool: Tool) -> Context:
        return Hand(call.id, self.progress.append)


@dataclass
class Hand:
    call_id: str
    tell: Callable[[Progress], None]
    session: str = "s1"
    workspace: Path = Path("/project")
    left: Left = Left(1, 1, 1, 1, 1.0)

    @property
    def key(self) -> str:
        return f"{self.session}/{self.call_id}"

    async def keep(self, path: Path) -> None: ...
    async def found(self, names: tuple[str, ...]) -> None: ...
    async def charge(self, usage: Usage) -> None: ...
    async def result(self, call_id: str) -> str | None:
        return None

    async def ask(self, form: Form) -> Filled:
        return Filled(accepted=False)


def a_tool(
    name: str = "look",
    run: Run | None = None,
    *,
    access: Access = Access.READ,
    subject: str = "",
    danger: str = "",
    effect: SideEffect | None = None,
    mutates: bool | None = None,
    timeout: float | None = None,
    approve: bool | None = None,
    source: str = "",
) -> Tool:
    """A tool that returns its arguments. `subject` names the argument that it touches."""

    async def echo(arguments: Arguments, context: Context) -> object:
        return dict(arguments)

    def touch(arguments: Arguments, workspace: Path) -> Touch:
        named = arguments.get(subject)
        subjects = tuple(str(named).split(" && ")) if named is not None else ()
        return Touch(access, subjects, danger)

    reads = access in (Access.NONE, Access.READ)
    return Tool(
        spec=ToolSpec(
            name=name,
            effect=effect or (SideEffect.READ if reads else SideEffect.UNSAFE),
            mutates=not reads if mutates is None else mutates,
        ),
        parse=parse,
        touch=touch,
        run=run or echo,
        timeout=timeout,
        approve=approve,
        source=source,
    )


def parse(text: str) -> Arguments:
    given = json.loads(text)
    if not isinstance(given, dict):
        raise BadArguments("The arguments must be an object.")
    if "wrong" in given:
        raise BadArguments("There is no parameter 'wrong'.")
    return given
