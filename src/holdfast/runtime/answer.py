"""Structured answers: the model is told the shape, its answer is read, and one that does not fit is
asked for again with what was wrong, as often as the limits allow.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Generic, TypeVar

from holdfast.core.effects import Request
from holdfast.core.events import Finish
from holdfast.core.jsontext import dumped
from holdfast.models.base import Count, Model, Replied, Tell

T = TypeVar("T")

DECODER = json.JSONDecoder()
MOST_TRIED = 20
"""Places where JSON may begin: a model that repeats itself writes brackets by the thousand."""


class NotTheShape(ValueError):
    """An answer that does not fit, in words for the model."""


class Shape(Generic[T]):
    """What an answer must be: a pydantic model, a dataclass, a TypedDict, `list[int]` and so on."""

    def __init__(self, kind: type[T]) -> None:
        from pydantic import TypeAdapter

        self._adapter: TypeAdapter[T] = TypeAdapter(kind)
        self.schema = dumped(self._adapter.json_schema())

    @property
    def instruction(self) -> str:
        return (
            "When you have finished, answer with JSON alone, without any words around it, that "
            f"fits this JSON schema:\n{self.schema}"
        )

    def read(self, text: str) -> T:
        from pydantic import ValidationError

        problem = "it holds no JSON"
        for candidate in candidates(text):
            try:
                return self._adapter.validate_json(candidate)
            except ValidationError as wrong:
                problem = first_faults(wrong)
        raise NotTheShape(
            f"Your answer does not fit the schema: {problem}. Answer again, with JSON alone."
        )


def candidates(text: str) -> Iterator[str]:
    """The parts of a text that are JSON: all of it, or the first value with words around it."""
    text, tried = text.strip(), 0
    for start, mark in enumerate(text):
        if start and mark not in "{[":
            continue
        tried += 1
        if tried > MOST_TRIED:
            return
        try:
            _, length = DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if start or length == len(text):
            yield text[start:length]
            return


def first_faults(wrong: Any) -> str:
    faults = []
    for fault in wrong.errors(include_url=False)[:5]:
        place = ".".join(map(str, fault["loc"]))
        faults.append(f"{place}: {fault['msg']}" if place else str(fault["msg"]))
    return "; ".join(faults)


class Shaped(Generic[T]):
    """A model whose answers are held to a shape. What does not fit is a reply with a problem, and
    the loop knows what to do with those."""

    def __init__(self, model: Model, shape: Shape[T]) -> None:
        self._model = model
        self._shape = shape

    @property
    def name(self) -> str:
        return self._model.name

    async def reply(self, request: Request, tell: Tell, *, attempt: int = 0) -> Replied:
        got = await self._model.reply(request, tell, attempt=attempt)
        # Calls are no answer yet, and what is written under an instruction of its own is a
        # conclusion or a summary, for which words are wanted.
        reply = got.reply
        if reply.calls or reply.problem or request.tail or not reply.text.strip():
            return got
        if reply.finish is not Finish.STOP:  # refused, or to be continued
            return got
        try:
            self._shape.read(reply.text)
        except NotTheShape as wrong:
            return replace(got, reply=replace(reply, problem=str(wrong)))
        return got

    async def count(self, request: Request) -> Count | None:
        return await self._model.count(request)

    async def aclose(self) -> None:
        await self._model.aclose()
