"""A model that answers although models fail: the same one is asked again, then the next one.

What is worth another try, and how often, is data (`Retries`). A request that was too long is
never sent again: it goes back to the loop, which makes it shorter. When nobody answers, the one
`ModelError` that is left says so, and the run ends with a text that claims nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

import anyio

from holdfast.core.effects import Request
from holdfast.core.events import Failure
from holdfast.core.messages import Note
from holdfast.models.base import Count, Model, ModelError, Piece, Replied, TakenBack, Tell, Waiting


def tries_by_default() -> Mapping[Failure, int]:
    return {Failure.BUSY: 5, Failure.GARBLED: 3, Failure.GONE: 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """How often and how patiently one model is asked. All times are seconds."""

    tries: Mapping[Failure, int] = field(default_factory=tries_by_default)
    """How often a request is made in all before such a failure is final; once, if not named."""
    first_wait: float = 0.5
    """Doubled with each try, up to `longest_wait`; each wait is a random share of that, so that
    many clients of one server do not come back at the same moment."""
    longest_wait: float = 8
    most_patience: float = 300
    """The longest wait that a server may ask for. With another model to ask, `longest_wait` is."""
    loading: float = 600
    """How long a model may take to load. Asking whether it has is no failed try."""
    loading_wait: float = 1
    rest: float = 30
    """How long a model that gave no answer is asked last."""


class Chain:
    """Models in the order in which they are asked. It has the name of the first."""

    def __init__(
        self, models: Sequence[Model], retries: Retries | None = None, random: Random | None = None
    ) -> None:
        if not models:
            raise ValueError("a chain needs at least one model")
        self._models = tuple(models)
        self._retries = retries or Retries()
        self._random = random or Random()
        self._rests: dict[int, float] = {}
        """Until when each of the models is asked last."""

    @property
    def name(self) -> str:
        return self._models[0].name

    async def reply(self, request: Request, tell: Tell, *, attempt: int = 0) -> Replied:
        notes: list[str] = []
        failed: list[tuple[Model, ModelError]] = []
        order = self._order()
        for model in order:
            turn = Turn(model, self._retries, self._random, tell, is_last=model is order[-1])
            try:
                replied = await turn.reply(request, attempt)
            except ModelError as error:
                if error.failure is Failure.OVERFLOW and model is self._models[0]:
                    raise
                failed.append((model, error))
                notes += (*turn.notes, f"{model.name} gave no answer: {error.detail}")
                self._rests[id(model)] = anyio.current_time() + self._retries.rest
            else:
                self._rests.pop(id(model), None)
                by = "" if model is self._models[0] else model.name
                return replace(replied, by=by, notes=(*notes, *turn.notes, *replied.notes))
        raise self._final(failed)

    async def count(self, request: Request) -> Count | None:
        return await self._models[0].count(request)

    async def aclose(self) -> None:
        for model in self._models:
            await model.aclose()

    def _order(self) -> list[Model]:
        """Those that rest come last; the sort keeps the order of the others."""
        now = anyio.current_time()
        return sorted(self._models, key=lambda model: self._rests.get(id(model), 0) > now)

    def _final(self, failed: list[tuple[Model, ModelError]]) -> ModelError:
        if len(failed) == 1:
            return failed[0][1]
        detail = "; ".join(f"{model.name}: {error.detail}" for model, error in failed)
        for _, error in failed:
            if error.failure is Failure.OVERFLOW:
                # A fallback would answer a shorter request, which only the loop can make. What
                # it counted is left out: it counts otherwise than the model the loop knows.
                return ModelError(Failure.OVERFLOW, detail, window=error.window)
        return ModelError(failed[0][1].failure, detail)


class Turn:
    """One model being asked, as often as it is worth it."""

    def __init__(
        self, model: Model, retries: Retries, random: Random, tell: Tell, *, is_last: bool
    ) -> None:
        self._model = model
        self._retries = retries
        self._random = random
        self._outer = tell
        self._told = False
        self._is_last = is_last
        self.notes: list[str] = []

    async def reply(self, request: Request, attempt: int) -> Replied:
        failures = 0
        patience = anyio.current_time() + self._retries.loading
        asked = request
        while True:
            try:
                return await self._model.reply(asked, self._tell, attempt=attempt)
            except ModelError as error:
                self._take_back(error)
                if error.loading and anyio.current_time() < patience:
                    wait = max(error.retry_after or 0.0, self._retries.loading_wait)
                    wait = min(wait, patience - anyio.current_time())
                    await self._wait(max(wait, 0.0), f"{self._model.name} is loading")
                    continue
                failures += 1
                pause = self._next_wait(error, failures)
                if failures >= self._retries.tries.get(error.failure, 1) or pause is None:
                    raise
                self.notes.append(f"tried again, because {error.detail}")
                if error.failure is Failure.GARBLED:  # the same again would fail the same way
                    attempt += 1
                    asked = telling_what_was_wrong(request, error.problem)
                await self._wait(pause, error.detail)

    def _next_wait(self, error: ModelError, failures: int) -> float | None:
        """How long to wait for the next try; None if that is too long."""
        retries = self._retries
        if error.retry_after is not None:
            most = retries.most_patience if self._is_last else retries.longest_wait
            return error.retry_after if error.retry_after <= most else None
        longest = min(retries.longest_wait, retries.first_wait * 2 ** min(failures - 1, 60))
        return self._random.uniform(longest / 2, longest)

    async def _wait(self, seconds: float, why: str) -> None:
        self._outer(Waiting(why, seconds, self._model.name))
        await anyio.sleep(seconds)

    def _tell(self, piece: Piece) -> None:
        self._told = True
        self._outer(piece)

    def _take_back(self, error: ModelError) -> None:
        if self._told:
            self._told = False
            self._outer(TakenBack(error.detail))


def telling_what_was_wrong(request: Request, problem: str) -> Request:
    return replace(request, tail=(*request.tail, Note(problem))) if problem else request
