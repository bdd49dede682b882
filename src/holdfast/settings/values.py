"""What can be set: every key with its type and its default, as frozen values.

The fields are the keys: `Values.limits.rounds` is `limits.rounds` in a file and
`HOLDFAST_LIMITS_ROUNDS` in the environment. What a number does to a run is said where the run
knows it, in `core.limits`; here are only those that people give, which may be fewer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from holdfast.core.limits import Contradiction, Limits, OnLimit, Patience
from holdfast.core.tokens import BUDDY, CLASSES, LOCALCOWORK, Rates

RATES: Mapping[str, Rates] = {"classes": CLASSES, "localcowork": LOCALCOWORK, "buddy": BUDDY}

Amount: TypeAlias = int | float | None
"""Tokens, or below 1 a share of the window. None: as much as suits the window."""
Table: TypeAlias = Mapping[str, object]


def above_zero(group: str, values: object, *names: str) -> None:
    for name in names:
        value = getattr(values, name)
        if not value > 0:
            raise Contradiction(f"{group}.{name} is {value:g}, and must be above zero.")


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetWanted:
    """`core.limits.Budget` before the window is known."""

    window: int | None = None
    """None: what the server or the catalogue says."""
    output: Amount = None
    safety: Amount = None
    min_round: Amount = None
    evict_below: Amount = None
    evict_to: Amount = None
    keep_rounds: int = 3
    keep_failures: int = 3
    evicts: bool = True
    warn_at: float = 0.8

    def __post_init__(self) -> None:
        if not 0 < self.warn_at <= 1:
            raise Contradiction(
                f"budget.warn_at is {self.warn_at:g}, and must be a share of the window: above 0 and "
                "not above 1."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class CapsWanted:
    """`core.limits.Caps` before the window is known. None: what suits the window."""

    result: int | None = None
    arguments: int | None = None
    text: int | None = None
    pin: int | None = None
    line: int | None = None
    digest: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """Rules such as `shell(git diff *)`; `tools` reads them."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    mode: Literal["read-only", "workspace-write", "off"] = "workspace-write"
    network: bool = False
    writable: tuple[str, ...] = ()
    """Folders besides the workspace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsWanted:
    choice: Literal["auto", "flat", "allow", "retrieval"] = "auto"
    """Which definitions a model is sent: all, those in `allow`, or the `top` nearest ones. `auto`:
    all, as long as they take no more than a third of the window; then the nearest of them."""
    top: int = 15
    """LocalCowork measured 5, 10, 15 and 20 for a model of 1.2B: 54, 60, 68 and 63 per cent."""
    allow: tuple[str, ...] = ()
    timeout: float = 600.0
    """Seconds for a call of a tool that has no time of its own."""
    builtin: tuple[str, ...] | None = None
    """Names of ours that are offered. None: all that suit the program."""
    caps: Mapping[str, int] = field(default_factory=dict)
    """Characters of a result, by the name of the tool."""
    keep_last: Mapping[str, int] = field(default_factory=dict)
    """How many of its newest results stay whole, by the name of the tool."""

    def __post_init__(self) -> None:
        above_zero("tools", self, "top", "timeout")
        if self.choice == "allow" and not self.allow:
            raise Contradiction(
                'tools.choice is "allow", and tools.allow names no tool: a model could do nothing.'
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    names: tuple[str, ...] = ()
    """Variables of the environment whose values are never written down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalWanted:
    path: str | None = None
    """None: in the folder for data."""
    synchronous: Literal["normal", "full"] = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetriesWanted:
    """`models.fallback.Retries`, with a name for each failure that is tried again."""

    busy: int = 5
    garbled: int = 3
    gone: int = 3
    first_wait: float = 0.5
    longest_wait: float = 8.0
    most_patience: float = 300.0
    loading: float = 600.0
    loading_wait: float = 1.0
    rest: float = 30.0

    def __post_init__(self) -> None:
        above_zero("retries", self, "busy", "garbled", "gone", "first_wait", "longest_wait")
        above_zero("retries", self, "most_patience", "loading", "loading_wait", "rest")


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitsWanted:
    """`models.wire.Waits`: seconds of silence after which a server counts as gone."""

    connect: float = 10.0
    first: float = 600.0
    between: float = 120.0
    soon: float = 5.0

    def __post_init__(self) -> None:
        above_zero("waits", self, "connect", "first", "between", "soon")


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """All that was set, or is so by default."""

    model: tuple[str, ...] = ()
    """Whoever is asked first, then whoever is asked if that one fails."""
    profile: str = "default"
    instructions: str = ""
    """What the user has to say to every model."""
    guidance: tuple[str, ...] = ()
    """How to work, a sentence each. Small models lose track of more than five to seven."""
    dialect: Literal["auto", "native", "actions", "json"] = "auto"
    """How models are told to call tools; `auto` leaves it to the server and the catalogue."""
    made_for: int = 32_768
    """The window for which a profile has its numbers. In a smaller one they shrink with it."""
    on_limit: OnLimit = OnLimit.CONCLUDE
    summaries: bool = False
    rates: Literal["classes", "localcowork", "buddy"] = "classes"
    permission_mode: Literal["plan", "ask", "accept-edits", "auto", "deny"] = "ask"
    limits: Limits = field(default_factory=Limits)
    patience: Patience = field(default_factory=Patience)
    caps: CapsWanted = field(default_factory=CapsWanted)
    budget: BudgetWanted = field(default_factory=BudgetWanted)
    permissions: Permissions = field(default_factory=Permissions)
    sandbox: Sandbox = field(default_factory=Sandbox)
    tools: ToolsWanted = field(default_factory=ToolsWanted)
    secrets: Secrets = field(default_factory=Secrets)
    journal: JournalWanted = field(default_factory=JournalWanted)
    retries: RetriesWanted = field(default_factory=RetriesWanted)
    waits: WaitsWanted = field(default_factory=WaitsWanted)
    request: Table = field(default_factory=dict)
    """Fields of every request, such as `temperature`."""
    mcp_servers: Mapping[str, Table] = field(default_factory=dict)
    providers: Mapping[str, Table] = field(default_factory=dict)
    models: Mapping[str, Table] = field(default_factory=dict)
    """What you know of a model, in the words of the catalogue: `window`, `prices`, `can`."""
    docs: Table = field(default_factory=dict)
    """Left to the questions about documents."""
    ui: Table = field(default_factory=dict)
    """Left to the programs people look at."""


def prompt(values: Values) -> str:
    """What the profile and the user say to a model, as text for the system prompt."""
    rules = "\n".join(f"{number}. {rule}" for number, rule in enumerate(values.guidance, 1))
    return "\n\n".join(part for part in (values.instructions.strip(), rules) if part)
