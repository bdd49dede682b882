"""What is true of a session at one moment. It is the fold of its events: see `fold`.

Everything that grows is shared between a state and the next, and everything else is bounded, so
that a state costs no more after ten thousand rounds than after ten.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from holdfast.core.copies import replace
from holdfast.core.events import EndDecided, Purpose, Reply, RunStopped
from holdfast.core.guards import Evidence
from holdfast.core.history import History, OpenCall
from holdfast.core.instructions import instruction
from holdfast.core.ledger import Ledger
from holdfast.core.limits import SMALLEST_CAP, Settings, Spent
from holdfast.core.tokens import Gauge, Size, size_of, size_of_tools
from holdfast.core.tools import ToolSpec


@dataclass(frozen=True, slots=True)
class Waiting:
    """A request that is on its way."""

    ask: int
    purpose: Purpose
    size: Size
    expected: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The work that answers one message of the user."""

    number: int
    began: float
    """Seconds that had passed in the session."""
    settings: Settings
    first_ask: int
    """The number of its first request: a reply to an earlier one is for a run that is over."""
    tools: tuple[ToolSpec, ...]
    """All that exist now."""
    dropped: tuple[str, ...] = ()
    """Tools that only failed, and are gone for this run."""
    shelved: tuple[str, ...] = ()
    """Tools that exist but are left out of the definitions."""
    system: Size
    fixed: Size
    """System prompt and definitions, measured whenever they change."""
    spent: Spent = field(default_factory=Spent)
    evidence: Evidence = field(default_factory=Evidence)
    ledger: Ledger = field(default_factory=Ledger)
    waiting: Waiting | None = None
    reply: Reply | None = None
    """The reply of the round: its calls are in `open`; one without calls waits to be judged."""
    open: tuple[OpenCall, ...] = ()
    parts: tuple[str, ...] = ()
    """What was said before the output limit cut it, to be continued."""
    queued: tuple[str, ...] = ()
    """What the user said meanwhile; it takes its place when the round is over."""
    miscounted: tuple[int, int] | None = None
    """Tokens the server counted and tokens expected, where the two cannot both be right."""
    told_full: bool = False
    """The person knows that the window is filling up."""
    summary: Reply | None = None
    summarised: bool = False
    failed: str = ""
    """How the model failed for good."""
    crashes: int = 0
    """How often the process died during this run."""
    cancelled: bool = False
    overtime: bool = False
    ending: EndDecided | None = None
    stopped: RunStopped | None = None

    @property
    def unanswered(self) -> tuple[OpenCall, ...]:
        return tuple(each for each in self.open if each.result is None)

    @property
    def tools_at_work(self) -> bool:
        """Calls were handed out, and not all have come back."""
        return any(each.admitted and each.result is None for each in self.open)

    @property
    def usable(self) -> tuple[ToolSpec, ...]:
        """What the model may call."""
        return tuple(tool for tool in self.tools if tool.name not in self.dropped)

    @property
    def offered(self) -> tuple[ToolSpec, ...]:
        """What the definitions tell the model of."""
        return tuple(tool for tool in self.usable if tool.name not in self.shelved)

    def acceptable(self, tools: tuple[ToolSpec, ...]) -> Iterator[ToolSpec]:
        """Tools that came during the run, held to its numbers: of two with one name the first, and
        no cap but one that the settings could have had."""
        names: set[str] = set()
        most = max(map(self.settings.cap_of, (None, *self.settings.tools)))
        for tool in tools:
            if tool.name not in names:
                names.add(tool.name)
                fits = tool.cap is None or SMALLEST_CAP <= tool.cap <= most
                yield tool if fits else replace(tool, cap=None)

    def offering(
        self,
        *,
        tools: tuple[ToolSpec, ...] | None = None,
        shelved: tuple[str, ...] | None = None,
        dropped: tuple[str, ...] | None = None,
    ) -> "Run":
        """The run with other tools, measured."""
        run = replace(
            self,
            tools=self.tools if tools is None else tuple(self.acceptable(tools)),
            shelved=self.shelved if shelved is None else shelved,
            dropped=self.dropped if dropped is None else dropped,
        )
        return replace(run, fixed=self.system + size_of_tools(run.offered))


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    now: float | None = None
    """The time of the last event that had one."""
    elapsed: float = 0.0
    """Seconds that have passed, as the events tell; never fewer than before."""
    history: History = field(default_factory=History)
    gauge: Gauge = field(default_factory=Gauge)
    window: int | None = None
    """The window as the server told it, where it is smaller than the settings say."""
    pins: tuple[tuple[str, str], ...] = ()
    granted: tuple[str, ...] = ()
    """Rules that the user's answers made for the rest of the session."""
    runs: int = 0
    asks: int = 0
    replied: int = 0
    """The newest request that was answered."""
    calls: int = 0
    abandoned: tuple[str, ...] = ()
    """Calls that earlier runs gave up on: they may still come back."""
    run: Run | None = None
    """The current run, or the last one when it has stopped."""


NEW = State()


def window_of(state: State, run: Run) -> int:
    """The window of the settings, or less where the server said so."""
    most = run.settings.budget.window
    return most if state.window is None else min(most, state.window)


def request_size(state: State, run: Run, purpose: Purpose) -> Size:
    """The size of everything that a request for this purpose holds."""
    if purpose is Purpose.WORK:
        return run.fixed + state.history.size
    size = run.system + state.history.size
    for note in instruction(purpose):
        size = size + size_of(note)
    return size
