"""Where questions wait for a person: may this call run, what does this server want to know.

Who answers is up to the application. A function given as `approve` is asked each time; with
`attended` somebody watches the session and calls `answer`; with neither nobody is there, and what
needs a yes is not done.
"""

import inspect
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import anyio

from holdfast.runtime.bus import Answered, Passing
from holdfast.tools.base import Filled, Form
from holdfast.tools.door import Answer, Question
from holdfast.tools.threads import in_thread

log = logging.getLogger("holdfast")

Approve: TypeAlias = Callable[[Question], Answer | bool | Awaitable[Answer | bool]]
"""Says yes or no. One that is no coroutine is called in a thread of its own, since it may wait for
somebody at a keyboard."""
Show: TypeAlias = Callable[[Passing], None]

NOBODY = Answer(allowed=False, by="nobody", words="it needs a yes, and nobody is there to give it")
NOT_FILLED = Filled(accepted=False, cancelled=True)


@dataclass(slots=True)
class Pending:
    """A question that waits."""

    what: Question | Form
    came: anyio.Event = field(default_factory=anyio.Event)
    answer: Answer | Filled | None = None


class Desk:
    def __init__(self, approve: Approve | None = None, *, attended: bool = False) -> None:
        self._approve = approve
        self._attended = attended
        self._pending: dict[str, Pending] = {}
        self._asking = 0

    @property
    def is_waiting(self) -> bool:
        return self._asking > 0

    @property
    def pending(self) -> dict[str, Question | Form]:
        """What waits for an answer, by the id of its call."""
        return {id_: each.what for id_, each in self._pending.items()}

    def answer(self, call_id: str, answer: Answer | Filled) -> bool:
        """False: nobody asks that any longer. The first answer counts."""
        pending = self._pending.get(call_id)
        if pending is None or pending.answer is not None:
            return False
        if isinstance(pending.what, Question) is not isinstance(answer, Answer):
            raise TypeError(
                f"{call_id} asks for {'an Answer' if isinstance(pending.what, Question) else 'a Filled'}"
            )
        pending.answer = answer
        pending.came.set()
        return True

    async def ask(self, question: Question, show: Show) -> Answer:
        if self._approve is not None:
            return await self._asked(self._approve, question)
        if not self._attended:
            return NOBODY
        answer = await self._wait(question.call.id, question, show)
        return answer if isinstance(answer, Answer) else NOBODY

    async def fill(self, form: Form, show: Show) -> Filled:
        if not self._attended:
            return NOT_FILLED
        answer = await self._wait(form.call_id, form, show)
        return answer if isinstance(answer, Filled) else NOT_FILLED

    async def _asked(self, approve: Approve, question: Question) -> Answer:
        self._asking += 1
        try:
            if inspect.iscoroutinefunction(approve) or inspect.iscoroutinefunction(
                getattr(approve, "__call__", None)  # noqa: B004  an object with an async __call__
            ):
                said = approve(question)
            else:
                said = await in_thread(approve, question)
            if inspect.isawaitable(said):
                said = await said
        except Exception as error:  # a no is safe, and the run is not lost with it
            log.exception("the one who approves calls failed")
            return Answer(allowed=False, by=NOBODY.by, words=f"asking failed: {error!r}")
        finally:
            self._asking -= 1
        return said if isinstance(said, Answer) else Answer(allowed=said is True)

    async def _wait(
        self, call_id: str, what: Question | Form, show: Show
    ) -> Answer | Filled | None:
        pending = self._pending[call_id] = Pending(what)
        self._asking += 1
        show(Passing(what, call_id))
        try:
            await pending.came.wait()
        finally:
            self._asking -= 1
            self._pending.pop(call_id, None)
            show(Passing(Answered(call_id), call_id))
        return pending.answer
