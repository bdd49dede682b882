"""The misbehaving model server: a real one, on a port of this machine, in a thread of its own.

    with ModelServer(calls("clock"), says("It is noon.")) as server:
        ...  # point any client at server.url

What it was asked is in `received`, and what a strict server would not have taken of that, in
`complaints`. Which answer a request gets is decided in `answers`; here are the sockets.
"""

import socket
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from types import TracebackType

from anyio import create_task_group, wait_readable
from anyio.abc import TaskStatus
from anyio.from_thread import start_blocking_portal

from holdfast.testing.server.answers import Answers
from holdfast.testing.server.http import Answer, BadRequest, Connection, HungUp, Request
from holdfast.testing.server.kinds import Kind
from holdfast.testing.server.record import Received, Record
from holdfast.testing.server.turns import Turn

HOST = "127.0.0.1"


class ModelServer:
    """`turns` is the script. When it has been played, `then` answers; without it, a 500 does.

    It runs from the beginning of its `with` block to the end. `kind` is a `Kind`, or its name as
    on the command line. With a `key`, requests must carry it. With `tools=False` the model cannot use tools.
    `strict=False` turns the judging off; `refuse=True` answers a request that has complaints
    with a 400.
    """

    def __init__(
        self,
        *turns: Turn,
        kind: Kind | str = Kind.LLAMA_CPP,
        window: int = 4096,
        model: str = "test-model",
        key: str | None = None,
        tools: bool = True,
        then: Turn | None = None,
        strict: bool = True,
        refuse: bool = False,
        port: int = 0,
    ) -> None:
        self.expects_complaints = False
        self._answers = Answers(
            turns=list(turns),
            then=then,
            kind=Kind(kind),
            window=window,
            model=model,
            key=key,
            tools=tools,
            strict=strict,
            refuse=refuse,
        )
        self._port = port
        self._record = Record()
        self._running = ExitStack()

    @property
    def url(self) -> str:
        """Without the `/v1` of OpenAI's API."""
        return f"http://{HOST}:{self.port}"

    @property
    def port(self) -> int:
        if not self._port:
            raise RuntimeError(
                "The server is not started, so it has no address yet. Use it with `with`: "
                "with ModelServer(...) as server: ..."
            )
        return self._port

    @property
    def received(self) -> list[Received]:
        return self._record.requests

    @property
    def chats(self) -> list[Received]:
        """The requests that asked for a reply."""
        return [each for each in self.received if each.is_chat]

    @property
    def complaints(self) -> list[str]:
        return [complaint for each in self.received for complaint in each.complaints]

    def expect_complaints(self) -> None:
        """Tell the fixture `model_server` that this test sends bad requests on purpose."""
        self.expects_complaints = True

    def wait_for(self, predicate: Callable[[], object], seconds: float = 5.0) -> None:
        """Block until `predicate`, a question about the record, holds; else `TimeoutError`."""
        self._record.wait_for(predicate, seconds)

    def __enter__(self) -> "ModelServer":
        with ExitStack() as running:
            portal = running.enter_context(start_blocking_portal("asyncio"))
            serving, self._port = portal.start_task(self._serve)
            running.callback(stop, serving)
            self._running = running.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._running.close()
        if error is None and self._answers.mistake:
            raise self._answers.mistake  # in a function of the script; the client saw only a 500

    async def _serve(self, *, task_status: TaskStatus[int]) -> None:
        with socket.create_server((HOST, self._port), backlog=256) as listener:
            listener.setblocking(False)
            async with create_task_group() as group:
                task_status.started(listener.getsockname()[1])
                while True:
                    await wait_readable(listener)
                    try:
                        sock, _ = listener.accept()
                    except (BlockingIOError, ConnectionError):
                        continue
                    group.start_soon(self._talk, Connection(sock))

    async def _talk(self, connection: Connection) -> None:
        try:
            while await self._exchange(connection):
                pass
        finally:
            connection.close()

    async def _exchange(self, connection: Connection) -> bool:
        """One request and its answer; whether there may be another on this connection."""
        try:
            request = await connection.request()
        except BadRequest as wrong:
            complaint = f"This is not HTTP: {wrong}."
            request = Request("?", "?", {"connection": "close"})
            received = Received("?", "?", {}, None, b"", (complaint,))
            self._record.add(received)
            answer = Answer(400, {"Content-Type": "text/plain"}, (complaint.encode(),))
        else:
            if request is None:
                return False
            received = self._answers.received(request)
            self._record.add(received)
            answer = self._answers.answer(received)
        is_kept = await self._written(connection, answer, request, received)
        if is_kept and answer.resets_next:
            await connection.reset_at_next_request()
            return False
        return is_kept

    async def _written(
        self, connection: Connection, answer: Answer, request: Request, received: Received
    ) -> bool:
        is_kept, hung_up = False, False
        self._record.answered(received, answer.told)
        try:
            is_kept = await connection.write(answer, request)
        except HungUp:
            hung_up = True
        self._record.ended(received, hung_up=hung_up)
        return is_kept


def stop(serving: Future[None]) -> None:
    if serving.done():
        serving.result()  # it ended by itself, which only a mistake of ours can do
    serving.cancel()
