"""What a request costs, in tokens, before and after a server has told us.

`Size` is what can be counted in a text without knowing any tokenizer. `Rates` turn a size into
tokens. A `Gauge` begins with rates and learns one model's tokenizer from the `prompt_tokens` its
server reports, so that a session is within a few percent after a few rounds.

Which messages are sent, and what is done when they do not fit, is `window`. An exact tokenizer,
where there is one, is the business of `models`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import ceil, fsum, sqrt
from operator import add, mul, sub
from typing import Self, assert_never

from holdfast.core.messages import AssistantMessage, Message, Note, ToolMessage, UserMessage
from holdfast.core.tools import ToolSpec

COMPONENTS = (
    "messages", "calls", "prose", "json", "definitions",
    "lower", "upper", "digits", "punctuation", "spaces", "newlines",
    "accented", "cyrillic", "arabic", "han", "kana", "hangul", "symbols", "others",
    "words", "numbers", "humps", "gaps",
)  # fmt: skip
"""What a size counts: messages, calls, characters by use, characters by class, beginnings."""

_ZERO = (0,) * len(COMPONENTS)


@dataclass(frozen=True, slots=True)
class Size:
    """What can be counted in messages and texts; sizes add up like the texts they came from."""

    counts: tuple[int, ...] = _ZERO
    """One number for each of `COMPONENTS`."""

    def __add__(self, other: "Size") -> "Size":
        return Size(tuple(map(add, self.counts, other.counts)))

    def __sub__(self, other: "Size") -> "Size":
        return Size(tuple(map(sub, self.counts, other.counts)))

    @property
    def messages(self) -> int:
        return self.counts[0]

    @property
    def calls(self) -> int:
        return self.counts[1]

    @property
    def characters(self) -> int:
        return sum(self.counts[2:5])


def size_of(message: Message) -> Size:
    """The size of one message, with everything of it that is sent."""
    match message:
        case UserMessage(text) | Note(text):
            return _size(messages=1, prose=text)
        case ToolMessage(text=text):
            return _size(messages=1, json=text)
        case AssistantMessage(text, calls):
            size = _size(messages=1, prose=text)
            for call in calls:
                size += _size(calls=1, json=call.name + call.arguments)
            return size
        case _:
            assert_never(message)


def size_of_system(text: str) -> Size:
    return _size(messages=1, prose=text)


def size_of_tools(tools: Iterable[ToolSpec]) -> Size:
    size = Size()
    for tool in tools:
        size += _size(definitions=tool.name + tool.description + tool.parameters)
    return size


def _size(
    *, messages: int = 0, calls: int = 0, prose: str = "", json: str = "", definitions: str = ""
) -> Size:
    used = (messages, calls, len(prose), len(json), len(definitions))
    return Size(used + _classes(prose + json + definitions))


def _table(**classes: Iterable[int]) -> bytes:
    """A table for `bytes.translate` that gives each byte the letter of its class."""
    table = bytearray(b"." * 256)
    for letter, members in classes.items():
        for byte in members:
            table[byte] = ord(letter)
    return bytes(table)


# A character belongs to the class of its first UTF-8 byte, which names its script well enough
# and lets the bytes be classed and counted in C, without a loop over characters.
_CLASS = _table(
    a=range(ord("a"), ord("z") + 1),
    A=range(ord("A"), ord("Z") + 1),
    d=range(ord("0"), ord("9") + 1),
    s=b" \t",
    n=b"\n\r",
    e=range(0xC3, 0xCC),
    c=range(0xCC, 0xD6),
    r=range(0xD6, 0xE0),
    h=range(0xE4, 0xEA),
    k=(0xE3, 0xEF),
    g=range(0xEA, 0xEE),
    y=(0xC2, 0xE2),
    o=(0xE0, 0xE1, *range(0xF0, 0xF5)),
)
_CONTINUATIONS = bytes(range(0x80, 0xC0))
_IS_WORD = _table(w=b"aAecr")
_IS_DIGIT = _table(w=b"d")
_COUNTED = tuple(letter.encode() for letter in "aAd.snecrhkgyo")


def _classes(text: str) -> tuple[int, ...]:
    data = text.encode("utf-8", "surrogatepass").translate(_CLASS, _CONTINUATIONS)
    words = data.translate(_IS_WORD)
    digits = data.translate(_IS_DIGIT)
    return (
        *map(data.count, _COUNTED),
        words.count(b".w") + words.startswith(b"w"),
        digits.count(b".w") + digits.startswith(b"w"),
        data.count(b"aA"),
        data.count(b"ss"),
    )


@dataclass(frozen=True, slots=True)
class Rates:
    """How a size becomes tokens before anything is learned, and whether anything will be."""

    weights: tuple[float, ...]
    """Tokens for one of each of `COMPONENTS`."""
    spread: tuple[float, ...] = (0.0,) * len(COMPONENTS)
    """How far tokenizers differ in each weight: one standard deviation."""
    learns: bool = False

    @classmethod
    def ratios(
        cls,
        *,
        prose: float = 3.2,
        json: float = 2.8,
        definitions: float | None = None,
        per_message: float = 4,
        per_call: float = 10,
    ) -> Self:
        """Characters per token, and a surcharge for each message and call. Does not learn."""
        used = (per_message, per_call, 1 / prose, 1 / json, 1 / (definitions or json))
        return cls(used + (0.0,) * (len(COMPONENTS) - len(used)))


CLASSES = Rates(
    weights=(4.0, 8.0, 0.0, 0.0, 0.0,
             0.262, 0.389, 0.9, 0.357, 0.05, 1.0,
             0.7, 0.4, 0.5, 0.9, 0.9, 0.9, 1.5, 2.0,
             0.1, 0.1, 0.1, 0.1),
    spread=(1.5, 5.0, 0.0, 0.0, 0.0,
            0.05, 0.1, 0.2, 0.1, 0.05, 0.3,
            0.4, 0.2, 0.3, 0.4, 0.4, 0.4, 0.7, 1.0,
            0.1, 0.1, 0.1, 0.1),
    learns=True,
)  # fmt: skip

LOCALCOWORK = Rates.ratios(prose=3.2, json=2.8, per_message=4, per_call=10)
BUDDY = Rates.ratios(prose=4, json=4, per_message=4, per_call=0)

_FIXED, _FIXED_SPREAD = 25.0, 25.0
"""Tokens of a request without any message: what the server's template adds by itself."""
_NOISE = 0.08
"""How far a text strays from the weights even when they are fully learned, as a share of it."""


@dataclass(frozen=True, slots=True)
class Expected:
    tokens: int
    safe: int


@dataclass(frozen=True, slots=True)
class Gauge:
    """What is known about one model's tokenizer. A value: learning gives a new one."""

    rates: Rates = CLASSES
    weights: tuple[float, ...] = ()
    doubt: tuple[tuple[float, ...], ...] = ()
    size: Size = Size()
    tokens: int = 0
    reports: int = 0
    at_least: tuple[Size, int] | None = None

    @classmethod
    def new(cls, rates: Rates = CLASSES) -> Self:
        return cls(rates)

    def expect(self, size: Size) -> Expected:
        weights = self.weights or (_FIXED if self.rates.learns else 0.0, *self.rates.weights)
        step = self._step(size, weights)
        tokens = fsum(map(mul, weights, step)) + (0 if step[0] else self.tokens)
        margin = 0.0
        if self.rates.learns:
            doubt = self.doubt or _prior(self.rates)
            noise = _NOISE * _gross(weights, step)
            unsure = fsum(v * fsum(map(mul, row, step)) for v, row in zip(step, doubt) if v)
            margin = 2 * sqrt(max(0.0, unsure) + noise * noise) + 2
        if self.at_least is not None:
            tokens = max(tokens, self._floor(size, weights))
        return Expected(max(0, ceil(tokens - 1e-6)), max(0, ceil(tokens + margin - 1e-6)))

    def _floor(self, size: Size, weights: tuple[float, ...]) -> float:
        assert self.at_least is not None
        refused, at_least = self.at_least
        here, there = (fsum(map(mul, weights[1:], s.counts)) for s in (size, refused))
        start = fsum(map(mul, weights[1:], self.size.counts))
        known = float(self.tokens)
        if there <= start:
            start = known = 0.0
        if here <= start or there <= 0:
            return 0.0
        return known + (at_least - known) * (here - start) / (there - start)

    def _step(self, size: Size, weights: tuple[float, ...]) -> tuple[int, ...]:
        whole = (1, *size.counts)
        if not self.reports:
            return whole
        step = (0, *map(sub, size.counts, self.size.counts))
        return step if _gross(weights, step) <= _gross(weights, whole) else whole

    def believes(self, size: Size, reported: int) -> bool:
        if reported <= 0:
            return False
        expected = max(1, self.expect(size).tokens)
        if not self.reports:
            return 0.2 * expected <= reported <= 6 * expected + 200
        return 0.4 * expected <= reported <= 4 * expected

    def learn(self, size: Size, reported: int) -> "Gauge":
        if not self.rates.learns or not self.believes(size, reported):
            return self
        weights = self.weights or (_FIXED, *self.rates.weights)
        doubt = self.doubt or _prior(self.rates)
        step = (0, *map(sub, size.counts, self.size.counts)) if self.reports else (1, *size.counts)
        surprise = reported - self.tokens - fsum(map(mul, weights, step))
        toward = [fsum(map(mul, row, step)) for row in doubt]
        noise = _NOISE * _gross(weights, step) + 1
        total = fsum(map(mul, toward, step)) + noise * noise
        learned = tuple(w + t * surprise / total for w, t in zip(weights, toward))
        less = tuple(
            tuple(p - t * u / total for p, u in zip(row, toward)) for row, t in zip(doubt, toward)
        )
        return replace(
            self, weights=learned, doubt=less, size=size, tokens=reported, reports=self.reports + 1
        )

    def refused(self, size: Size, window: int) -> "Gauge":
        expected = self.expect(size).tokens
        at_least = max(window + 1, ceil(expected * 1.05) if expected > window else 0)
        return replace(self, at_least=(size, at_least))


def _gross(weights: tuple[float, ...], step: tuple[int, ...]) -> float:
    return fsum(map(mul, map(abs, weights), map(abs, step)))


def _prior(rates: Rates) -> tuple[tuple[float, ...], ...]:
    spread = (_FIXED_SPREAD, *rates.spread)
    return tuple(
        tuple(s * s if i == j else 0.0 for j in range(len(spread))) for i, s in enumerate(spread)
    )
