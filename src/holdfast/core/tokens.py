"""What a request costs in tokens: guessed before a server has said, learned afterwards.

`Size` is what can be counted in a text without knowing any tokenizer, `Rates` turn a size into
tokens, and a `Gauge` begins with rates and learns one model's tokenizer from the `prompt_tokens`
which its server reports. Which messages are sent, and what leaves when they do not fit, is
`window`; counting with a real tokenizer, where there is one, belongs to `models`.

Gauges are compared in replays, so every sum is an `fsum`: the same to the last bit everywhere,
while the built-in `sum` rounds floats differently before and after Python 3.12.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, fsum, sqrt
from operator import add, mul, sub
from typing import Self, TypeAlias, assert_never

from holdfast.core.copies import replace
from holdfast.core.messages import AssistantMessage, Message, Note, ToolMessage, UserMessage
from holdfast.core.tools import ToolSpec

COMPONENTS = (
    # things
    "messages", "calls",
    # characters, by what they are used for
    "prose", "json", "definitions",
    # the same characters, by class
    "lower", "upper", "digits", "punctuation", "spaces", "newlines",
    "accented", "cyrillic", "arabic", "han", "kana", "hangul", "indic", "symbols", "emoji",
    # beginnings: of a run of letters, of digits, of a capital inside a word, of punctuation
    "words", "numbers", "humps", "marks",
)  # fmt: skip
"""What a size counts. `arabic` holds Hebrew and Greek too, `indic` Thai, `kana` the punctuation
of Chinese and Japanese, `symbols` quotes, dashes and arrows."""

_NOTHING = (0,) * len(COMPONENTS)


@dataclass(frozen=True, slots=True)
class Size:
    """What can be counted in messages. Sizes add up, and a difference may be negative."""

    counts: tuple[int, ...] = _NOTHING
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
    """The size of all that is sent of one message."""
    match message:
        case UserMessage(text) | Note(text):
            return _measure(messages=1, prose=text)
        case ToolMessage(text=text):
            return _measure(messages=1, json=text)
        case AssistantMessage(text, calls, owed):
            size = _measure(messages=1, prose=text, json=owed)
            for call in calls:
                size += _measure(calls=1, json=call.name + call.arguments)
            return size
        case _:
            assert_never(message)


def size_of_system(text: str) -> Size:
    return _measure(messages=1, prose=text)


def size_of_tools(tools: Iterable[ToolSpec]) -> Size:
    size = Size()
    for tool in tools:
        size += _measure(definitions=tool.name + tool.description + tool.parameters)
    return size


def _measure(
    *, messages: int = 0, calls: int = 0, prose: str = "", json: str = "", definitions: str = ""
) -> Size:
    uses = (messages, calls, len(prose), len(json), len(definitions))
    return Size(uses + _classes(prose + json + definitions))


def _table(**classes: Iterable[int]) -> bytes:
    """For `bytes.translate`: every byte becomes the letter of its class, or a dot."""
    table = bytearray(b"." * 256)
    for letter, members in classes.items():
        for byte in members:
            table[byte] = ord(letter)
    return bytes(table)


# A character has the class of its first UTF-8 byte. That byte names the script well enough, and
# classing and counting bytes is done in C: 50 MB/s, where a loop over characters does 3.
_CLASS = _table(
    a=range(ord("a"), ord("z") + 1),
    A=range(ord("A"), ord("Z") + 1),
    d=range(ord("0"), ord("9") + 1),
    s=b" \t",
    n=b"\n\r",
    e=(*range(0xC3, 0xCC), 0xE1),  # Latin with accents; 0xE1 for Vietnamese
    c=range(0xD0, 0xD4),
    r=(*range(0xCC, 0xD0), *range(0xD4, 0xE0)),
    h=range(0xE4, 0xEA),
    k=(0xE3, 0xEF),
    g=range(0xEA, 0xEE),
    i=(0xE0,),
    y=(0xC2, 0xE2),
    o=range(0xF0, 0xF5),
)
_CONTINUATIONS = bytes(range(0x80, 0xC0))
_COUNTED = tuple(letter.encode() for letter in "aAd.snecrhkgiyo")  # in the order of COMPONENTS
_LETTERS = _table(w=b"aAecrhkgi")  # of every script: in spaced Chinese each character begins one
_DIGITS = _table(w=b"d")
_PUNCTUATION = _table(w=b".")


def _classes(text: str) -> tuple[int, ...]:
    classes = text.encode("utf-8", "surrogatepass").translate(_CLASS, _CONTINUATIONS)
    letters = classes.translate(_LETTERS)
    digits = classes.translate(_DIGITS)
    punctuation = classes.translate(_PUNCTUATION)
    return (
        *map(classes.count, _COUNTED),
        letters.count(b".w") + letters.startswith(b"w"),
        digits.count(b".w") + digits.startswith(b"w"),
        classes.count(b"aA"),
        punctuation.count(b".w") + punctuation.startswith(b"w"),
    )


Vector: TypeAlias = tuple[float, ...]
"""A number for the request itself, then one for each of `COMPONENTS`."""


@dataclass(frozen=True, slots=True)
class Rates:
    """How a size becomes tokens while nothing is known, and whether reports change that."""

    weights: Vector
    """Tokens for each."""
    spread: Vector = (0.0,) * (1 + len(COMPONENTS))
    """How far tokenizers differ in each weight, as a standard deviation."""
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
        """Rates that never learn: characters per token, and tokens per message and per call."""
        known = (0.0, per_message, per_call, 1 / prose, 1 / json, 1 / (definitions or json))
        return cls(known + (0.0,) * (1 + len(COMPONENTS) - len(known)))

    @classmethod
    def learning(cls, **weights: tuple[float, float]) -> Self:
        """Rates that learn: for each component, and the `request`, a weight and its spread."""
        chosen = [weights.get(name, (0.0, 0.0)) for name in ("request", *COMPONENTS)]
        return cls(tuple(w for w, _ in chosen), tuple(s for _, s in chosen), learns=True)


CLASSES = Rates.learning(
    request=(40, 60), messages=(4, 1.5), calls=(8, 6), definitions=(0.01, 0.025),
    lower=(0.16, 0.035), upper=(0.3, 0.08), digits=(0.45, 0.4), punctuation=(0.1, 0.06),
    spaces=(0.02, 0.02), newlines=(1.4, 0.35), accented=(1.8, 2.0), cyrillic=(0.3, 0.12),
    arabic=(0.55, 0.46), han=(0.8, 0.35), kana=(0.85, 0.75), hangul=(1.15, 1.0), indic=(0.8, 0.8),
    symbols=(2.0, 0.8), emoji=(1.3, 0.9), words=(0.33, 0.14), numbers=(1.2, 0.2),
    humps=(1.0, 0.2), marks=(0.75, 0.15),
)  # fmt: skip
"""The default. The classes were fitted to nine tokenizers (o200k, Llama 3, Qwen, Tekken, Mistral
v3, Gemma 3, DeepSeek v4 and Coder, MiniMax M3) on one half of 36 kinds of text and rounded, the
spreads widened by a third, since other tokenizers will come. Then those of other scripts, of the
accents and of the request were widened until no first request of `lab/bench/tokens.py` was counted
too low, DeepSeek Coder being the tokenizer that asks for it. The first four allow for what chat
templates add, which no tokenizer shows."""

LOCALCOWORK = Rates.ratios(prose=3.2, json=2.8, per_message=4, per_call=10)
BUDDY = Rates.ratios(prose=4, json=4, per_message=4, per_call=0)

NOISE = 0.1
"""How far a text strays from weights that fit its tokenizer, as a share of its tokens."""
PIECE = 2_000
"""Tokens that stray together. In more than this, what one piece has too many another lacks."""
SIGMAS = 2.5
"""The margin of a safe expectation, in standard deviations. This and the noise were chosen by the
bench: with 2 and 0.085 one request in 23 was above its safe expectation before the sixth."""
REACH = 5
"""A learned weight stays between a fifth and five times what it was, whatever is reported."""


@dataclass(frozen=True, slots=True)
class Expected:
    tokens: int
    """The most likely count."""
    safe: int
    """The count that is rarely exceeded: wide before the first report, and wide again for a
    script that was in none of them."""


@dataclass(frozen=True, slots=True)
class Gauge:
    """What is known about one model's tokenizer. A value: to learn is to get another one."""

    rates: Rates = CLASSES
    weights: Vector = ()
    """The weights as learned so far."""
    doubt: tuple[Vector, ...] = ()
    """Their covariance: what the reports have not settled yet."""
    size: Size = Size()
    """The size of the request last reported,"""
    tokens: int = 0
    """what its server said it was,"""
    reports: int = 0
    """and how many such reports were believed."""
    refusal: tuple[Size, int] | None = None
    """A size that was refused, and the tokens it must at least have."""

    def __post_init__(self) -> None:
        if not self.weights:
            object.__setattr__(self, "weights", self.rates.weights)
            object.__setattr__(self, "doubt", _diagonal(self.rates.spread))

    def expect(self, size: Size) -> Expected:
        """What a request of this size will cost. To send less is never expected to cost more."""
        safe, tokens = self._guess(size)
        if self.refusal is not None:
            lift = max(0.0, self._at_least(size, *self.refusal) - tokens)
            safe, tokens = safe + lift, tokens + lift
        return Expected(_rounded(tokens), _rounded(safe))

    def weigh(self, size: Size) -> int:
        """What this much costs as a part of a request."""
        return _rounded(_dot(self.weights[1:], size.counts))

    def believes(self, size: Size, reported: int) -> bool:
        """Whether `reported` can be the count of all that was sent.

        It is not if it is absurd, or if it hardly grew although much was added. Servers cut long
        prompts without a word, leave out what was cached, or send a zero.
        """
        if reported <= 0:
            return False
        expected = max(1.0, self._guess(size)[1])
        if not self.reports:  # then little is known, and templates may add whole paragraphs
            return 0.25 * expected <= reported <= 6 * expected + 500
        step = _step(size, self.size)
        added = _dot(self.weights, step) if min(step) >= 0 else 0.0
        if added > 200 and reported - self.tokens < 0.1 * added:
            return False
        return 0.4 * expected <= reported <= 4 * expected

    def learn(self, size: Size, reported: int) -> "Gauge":
        """What is known after a server reported the tokens of a request of this size.

        The difference to the last report teaches the weights: recursive least squares, one step
        of a Kalman filter. A surprise beyond three sigmas counts as three, so that one odd report
        bends the weights but does not break them.
        """
        if not self.rates.learns or not self.believes(size, reported):
            return self
        step = _step(size, self.size) if self.reports else _whole(size)
        toward = [_dot(row, step) for row in self.doubt]
        variance = max(0.0, _dot(toward, step)) + self._noise(step) ** 2 + 1
        limit = 3 * sqrt(variance)
        surprise = reported - self.tokens - _dot(self.weights, step)
        pull = max(-limit, min(limit, surprise)) / variance
        return replace(
            self,
            weights=tuple(
                max(first / REACH, min(first * REACH, weight + pull * gain))
                for first, weight, gain in zip(
                    self.rates.weights, self.weights, toward, strict=True
                )
            ),
            doubt=tuple(
                _less(row, toward, gain / variance) if gain else row
                for row, gain in zip(self.doubt, toward, strict=True)
            ),
            size=size,
            tokens=reported,
            reports=self.reports + 1,
            refusal=None if self._outgrows_refusal(size) else self.refusal,
        )

    def refused(self, size: Size, window: int) -> "Gauge":
        """What is known after a server called this size larger than `window`, not saying by how
        much: at least one token, and each time a twentieth more. Smaller sizes shrink with it."""
        expected = self.expect(size).tokens
        more = ceil(expected * 1.05) if expected > window else window + 1
        return replace(self, refusal=(size, more))

    def _guess(self, size: Size) -> tuple[float, float]:
        """Safe and likely tokens: on from the last report, or all of it from nothing. After an
        eviction that may be the shorter way."""
        if not self.reports:
            return self._along(_whole(size), 0)
        step = _step(size, self.size)
        if min(step) >= 0:
            return self._along(step, self.tokens)
        return min(self._along(step, self.tokens), self._along(_whole(size), 0))

    def _along(self, step: Vector, start: int) -> tuple[float, float]:
        tokens = start + _dot(self.weights, step)
        if not self.rates.learns:
            return tokens, tokens
        return tokens + SIGMAS * sqrt(self._unsettled(step) + self._noise(step) ** 2) + 1, tokens

    def _unsettled(self, step: Vector) -> float:
        """The variance that comes from weights not known well."""
        if min(step) < 0:
            step = tuple(map(self._removed, range(len(step)), step))
        rows = zip(step, self.doubt, strict=True)
        return max(0.0, fsum(count * _dot(row, step) for count, row in rows if count))

    def _removed(self, i: int, count: float) -> float:
        """What leaves is doubted for less than its cost, or an eviction could seem to add."""
        deviation = sqrt(max(0.0, self.doubt[i][i]))
        most = 0.8 / SIGMAS * self.weights[i]
        return count if count >= 0 or deviation <= most else count * most / deviation

    def _noise(self, step: Vector) -> float:
        moved = _dot(self.weights, map(abs, step))
        return NOISE * min(moved, sqrt(moved * PIECE))

    def _at_least(self, size: Size, refused: Size, tokens: int) -> float:
        """The straight line from the last report to the refusal; from nothing, where there is no
        report or the server now refuses less than it once took."""
        here, there = self._plain(size), self._plain(refused)
        start, known = (self._plain(self.size), self.tokens) if self.reports else (0.0, 0)
        if there <= start:
            start, known = 0.0, 0
        if here <= start:
            return 0.0
        return known + (tokens - known) * ((here - start) / (there - start))

    def _outgrows_refusal(self, size: Size) -> bool:
        return self.refusal is not None and self._plain(size) > self._plain(self.refusal[0])

    def _plain(self, size: Size) -> float:
        return 1 + _dot(self.weights, _whole(size))


def _dot(weights: Iterable[float], counts: Iterable[float]) -> float:
    return fsum(map(mul, weights, counts))


def _less(row: Vector, toward: list[float], share: float) -> Vector:
    return tuple([doubt - share * gain for doubt, gain in zip(row, toward, strict=True)])


# Counts become floats here, once: multiplying floats with ints takes twice as long.
def _whole(size: Size) -> Vector:
    return (1.0, *map(float, size.counts))


def _step(to: Size, since: Size) -> Vector:
    return (0.0, *map(float, map(sub, to.counts, since.counts)))


def _rounded(tokens: float) -> int:
    return max(0, ceil(tokens - 1e-6))  # 28.000000000000004 is 28


@lru_cache(maxsize=16)  # a gauge is made anew for every run with another model
def _diagonal(spread: Vector) -> tuple[Vector, ...]:
    size = range(len(spread))
    return tuple(tuple(spread[i] ** 2 if i == j else 0.0 for j in size) for i in size)
