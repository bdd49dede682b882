"""How much is allowed and how much was spent: the settings of a run, all of them numbers.

Settings travel in the first event of a run, so a log can be replayed without asking anything
else. Numbers that contradict each other cannot be built: `Contradiction` says which and why.
"""

from dataclasses import dataclass, field
from enum import Enum
from math import ceil

from holdfast.core.copies import replace
from holdfast.core.messages import ToolMessage
from holdfast.core.tokens import CLASSES, Gauge, Rates, size_of
from holdfast.core.tools import ToolSpec


class Contradiction(ValueError):
    """Two numbers of the settings cannot both be meant."""


MOST_CALLS = 128
SMALLEST_CAP = 80
TOO_SMALL = "not even the notice that something was cut would fit"


def at_least(values: object, group: str, name: str, least: float, why: str) -> None:
    value = getattr(values, name)
    if name != "seconds" and not isinstance(value, int):
        raise Contradiction(f"{group}.{name} is {value}, and must be a whole number.")
    if not value >= least:  # so that a NaN is refused too
        needed = "above zero" if 0 < least < 1 else f"at least {least:g}"
        raise Contradiction(f"{group}.{name} is {value}, and must be {needed}: {why}.")


class StopReason(Enum):
    """Why a run ended. Exactly one, and true."""

    ANSWERED = "answered"
    CONCLUDED = "concluded"
    """The model fell silent or kept writing malformed calls, and was made to conclude."""
    OUT_OF_ROUNDS = "out of rounds"
    OUT_OF_CALLS = "out of calls"
    OUT_OF_TOKENS = "out of tokens"
    OUT_OF_MONEY = "out of money"
    OUT_OF_TIME = "out of time"
    NO_PROGRESS = "no progress"
    CONTEXT_EXHAUSTED = "context exhausted"
    CANCELLED = "cancelled"
    REFUSED = "refused"
    """The model or its provider declined to answer."""
    MODEL_FAILED = "model failed"


class OnLimit(Enum):
    """What happens when a limit is crossed or a guard stops the run."""

    CONCLUDE = "conclude"
    """Ask once more, without tools, for an honest summary."""
    ERROR = "error"
    """Do not ask again: the report from the ledger is the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Crossing one of these ends the run. Failed attempts count."""

    rounds: int = 300
    calls: int = 1_000
    tokens: int = 20_000_000
    cost: int = 10_000_000
    """Millionths of a dollar."""
    seconds: float = 4 * 3600.0
    reasks: int = 2
    """How often in a row a silent or malformed reply is asked for again before concluding."""
    overflows: int = 4
    """How often in one run a server may refuse a request as too long."""
    calls_per_reply: int = 64
    """Calls of one reply that are taken; the model is told of the others."""

    def __post_init__(self) -> None:
        for name in ("rounds", "calls", "tokens", "cost", "seconds", "calls_per_reply"):
            at_least(self, "limits", name, 1e-9, "no run could begin")
        for name in ("reasks", "overflows"):
            at_least(self, "limits", name, 0, "nothing can be allowed less often than never")
        if self.calls_per_reply > MOST_CALLS:
            raise Contradiction(
                f"limits.calls_per_reply is {self.calls_per_reply}; more than {MOST_CALLS} calls "
                "cannot be answered in one step."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long the guards wait before they speak, and before they stop a run."""

    repeat_told: int = 3
    """The same call with the same result for the nth time: the model is told."""
    repeat_blocked: int | None = None
    """From the nth time on the call is answered without running it, as long as its result can be
    seen. None: only from `repeat_stopped` on."""
    repeat_stopped: int = 5
    """The nth same call is not run, and the run ends unless other calls brought something new.
    The same cycle of calls counts too."""
    tool_failures: int = 5
    """Rounds in a row in which a tool only failed; then it leaves the definitions."""
    failed_rounds: int = 2
    """Rounds in a row in which everything failed; then the model gets a hint."""
    stale_told: int = 6
    """Rounds in a row that brought nothing new; then the user is told."""
    stale_stopped: int = 12

    def __post_init__(self) -> None:
        for name in ("repeat_stopped", "repeat_blocked"):
            if getattr(self, name) is not None:
                at_least(self, "patience", name, 2, "a first call is no repeat")
        for name in ("tool_failures", "failed_rounds"):
            at_least(self, "patience", name, 1, "nothing has failed yet")
        for told, stopped in (("repeat_told", "repeat_stopped"), ("stale_told", "stale_stopped")):
            first, last = getattr(self, told), getattr(self, stopped)
            if not 1 <= first <= last:
                raise Contradiction(
                    f"patience.{told} ({first}) must be at least 1 and not above {stopped} "
                    f"({last}): the model or its user is told before a run is stopped."
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """The largest size of one item that a model is shown, in characters."""

    result: int = 6_000
    """About a tenth of what a 32k window has for conversation (ADR 0004)."""
    arguments: int = 12_000
    """The arguments of one call as they stay in the history; the tool gets all of them."""
    text: int = 24_000
    """The text of one reply of the model. Words of the user are cut only if they do not fit."""
    pin: int = 2_000
    """One pinned fact: a plan, a working folder."""
    line: int = 320
    """What is left of one call and its result in the digest of old rounds."""
    digest: int = 6_000
    """All lines of the digest together; the oldest are counted, not shown."""

    def __post_init__(self) -> None:
        for name in ("result", "arguments", "text", "pin", "line", "digest"):
            at_least(self, "caps", name, SMALLEST_CAP, TOO_SMALL)
        if self.digest < self.line:
            raise Contradiction(f"caps.digest ({self.digest}) is below caps.line ({self.line}).")


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The tokens of a window, and how they are shared out. The defaults come from LocalCowork, a
    desktop agent for local models whose lessons Holdfast keeps."""

    window: int = 32_768
    output: int = 2_000
    """Kept free for the reply."""
    safety: int = 768
    min_round: int = 1_500
    """The gate: with less room than this no further round begins. About 500 tokens of reply
    and 1,000 of result."""
    evict_below: int = 5_000
    """The high mark: with less room than this, old rounds leave the window."""
    evict_to: int = 12_000
    """The low mark: eviction goes on until there is this much room, so that it is rare and the
    server's prompt cache survives the rounds between."""
    keep_rounds: int = 3
    """The newest rounds, which stay whole as long as anything else can go."""
    keep_failures: int = 3
    """The newest failed results, which stay whole while results of older rounds are digested."""
    evicts: bool = True
    """False: nothing leaves the window, and a run ends when it is full."""
    warn_at: float = 0.8
    """The share of the window from which on the user is warned, once a run."""

    def __post_init__(self) -> None:
        for name in ("window", "output", "min_round", "keep_rounds", "evict_below", "evict_to"):
            at_least(self, "budget", name, 1, "a round needs it")
        for name in ("safety", "keep_failures"):
            at_least(self, "budget", name, 0, "it would take from the others")
        reserved = self.output + self.safety + self.min_round
        if reserved >= self.window:
            raise Contradiction(
                f"budget.output ({self.output}) + safety ({self.safety}) + min_round "
                f"({self.min_round}) = {reserved} leaves nothing of a window of {self.window}."
            )
        if self.evicts and self.evict_to <= self.evict_below:
            raise Contradiction(
                f"budget.evict_to ({self.evict_to}) is not above evict_below ({self.evict_below}): "
                "eviction would end where it begins."
            )
        if self.evicts and self.evict_to >= self.window - self.output - self.safety:
            raise Contradiction(
                f"budget.evict_to ({self.evict_to}) can never be reached in a window of "
                f"{self.window} with {self.output} + {self.safety} reserved."
            )


TYPICAL = '{"id": "INV-20417", "path": "/home/ana/receipts/2026-03-14.txt", "total": 1284.5}\n' * 60
TYPICAL_SIZE = size_of(ToolMessage("", "", TYPICAL))


def result_tokens(characters: int, rates: Rates) -> int:
    """About how many tokens a result of so many characters has."""
    return ceil(characters * Gauge(rates).expect(TYPICAL_SIZE).tokens / len(TYPICAL))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything a run needs to know. Two runs with equal settings follow the same rules."""

    model: str = ""
    """Whose tokens are counted: what was learned about one model is not used for another."""
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    shelved: tuple[str, ...] = ()
    """Those of the tools that are left out of the definitions until they are looked for."""
    budget: Budget = field(default_factory=Budget)
    limits: Limits = field(default_factory=Limits)
    patience: Patience = field(default_factory=Patience)
    caps: Caps = field(default_factory=Caps)
    rates: Rates = CLASSES
    on_limit: OnLimit = OnLimit.CONCLUDE
    summaries: bool = False
    """Before rounds leave the window, ask the model what must not be forgotten."""

    def __post_init__(self) -> None:
        names = [tool.name for tool in self.tools]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise Contradiction(f"two tools are named '{twice[0]}'; a call could mean either.")
        for tool in self.tools:
            if tool.keep_last is not None and tool.keep_last < 1:
                raise Contradiction(
                    f"the tool {tool.name} keeps its last {tool.keep_last} results; at least 1 "
                    "must stay, or the model would never see one."
                )
            if self.cap_of(tool) < SMALLEST_CAP:
                raise Contradiction(
                    f"the cap of the tool {tool.name} is {tool.cap}; below {SMALLEST_CAP}: {TOO_SMALL}."
                )
        largest = max((self.cap_of(tool) for tool in self.tools), default=self.caps.result)
        result = result_tokens(largest, self.rates)
        if self.budget.evicts and self.budget.evict_below <= self.budget.min_round + result:
            raise Contradiction(
                f"budget.evict_below ({self.budget.evict_below}) must be above min_round "
                f"({self.budget.min_round}) plus one result (about {result} tokens): otherwise the "
                "gate ends the run before eviction makes room."
            )

    def cap_of(self, tool: ToolSpec | None) -> int:
        return self.caps.result if tool is None or tool.cap is None else tool.cap

    @classmethod
    def for_window(
        cls, window: int, *, system: str = "", tools: tuple[ToolSpec, ...] = ()
    ) -> "Settings":
        """The defaults, scaled to a window: small ones get small reservations and caps."""
        result = min(6_000, max(80, window // 6))
        output, safety = min(4_000, max(64, window // 8)), min(768, window // 40)
        min_round = min(1_500, window // 20)
        below = min_round + result_tokens(result, CLASSES) + max(1, window // 40)
        return cls(
            system=system,
            tools=tuple(
                t if t.cap is None or t.cap <= result else replace(t, cap=result) for t in tools
            ),
            budget=Budget(
                window=window,
                output=output,
                safety=safety,
                min_round=min_round,
                evict_below=below,
                evict_to=max(below + 1, (window - output - safety) * 2 // 5),
            ),
            caps=Caps(
                result=result,
                arguments=result * 2,
                text=result * 4,
                pin=max(80, result // 3),
                line=min(320, max(80, result // 5)),
                digest=result,
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What one request cost, as the server reported it."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    """The part of `prompt` that the server had read before."""
    cost: int = 0
    """Millionths of a dollar, from the catalogue of models."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a run has used up so far."""

    rounds: int = 0
    """Requests that were made, also those that failed; the conclusion is not one."""
    calls: int = 0
    prompt: int = 0
    completion: int = 0
    cached: int = 0
    cost: int = 0

    def adding(self, usage: Usage) -> "Spent":
        return replace(
            self,
            prompt=self.prompt + max(0, usage.prompt),
            completion=self.completion + max(0, usage.completion),
            cached=self.cached + max(0, usage.cached),
            cost=self.cost + max(0, usage.cost),
        )

    def crossed(self, limits: Limits, seconds: float) -> StopReason | None:
        """The limit that ends a run which has taken so many seconds, if there is one."""
        if seconds >= limits.seconds:
            return StopReason.OUT_OF_TIME
        if self.cost >= limits.cost:
            return StopReason.OUT_OF_MONEY
        if self.prompt + self.completion >= limits.tokens:
            return StopReason.OUT_OF_TOKENS
        if self.calls >= limits.calls:
            return StopReason.OUT_OF_CALLS
        if self.rounds >= limits.rounds:
            return StopReason.OUT_OF_ROUNDS
        return None


def limit_sentence(reason: StopReason, limits: Limits) -> str:
    limit = {
        StopReason.OUT_OF_ROUNDS: several(limits.rounds, "round"),
        StopReason.OUT_OF_CALLS: several(limits.calls, "tool call"),
        StopReason.OUT_OF_TOKENS: several(limits.tokens, "token"),
        StopReason.OUT_OF_MONEY: dollars(limits.cost),
        StopReason.OUT_OF_TIME: several(limits.seconds, "second"),
    }[reason]
    return f"The limit of {limit} is reached."


def several(number: float, what: str) -> str:
    figure = f"{number:g}" if number < 1e5 else f"{number:.0f}"
    return f"{figure} {what}" if number == 1 else f"{figure} {what}s"


def dollars(millionths: int) -> str:
    less_than_a_cent = millionths < 10_000
    return f"${millionths / 1e6:f}".rstrip("0") if less_than_a_cent else f"${millionths / 1e6:.2f}"
