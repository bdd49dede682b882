"""What happened: facts in the past tense, never edited. A session is the fold of its events.

The first group comes from the world and carries the time; the second follows by the rules of
`machine`, and is written down too, so that a log means the same when the rules have changed.
"""

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from holdfast.core.limits import Settings, StopReason, Usage
from holdfast.core.tools import ToolSpec


class Finish(Enum):
    """Why a model stopped writing, as its server put it."""

    STOP = "stop"
    LENGTH = "length"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class WantedCall:
    """A call as the model wrote it: the name may not exist, the arguments may not parse."""

    name: str
    arguments: str = "{}"
    id: str = ""
    """The server's, for the log only: calls get ids of our own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    text: str = ""
    calls: tuple[WantedCall, ...] = ()
    finish: Finish = Finish.STOP
    reasoning: str = ""
    """For people; never an answer, never sent back."""
    problem: str = ""
    """What was wrong with it, in words for the model, where the client could not read a call."""
    owed: str = ""
    """What the provider demands back with this reply, sealed: only its client can read it."""


class Failure(Enum):
    """How a model can fail after its client has tried again and tried its fallbacks."""

    REJECTED = "rejected"
    """The server will not take the request, whatever we do: a wrong key, an unknown model."""
    OVERFLOW = "overflow"
    BUSY = "busy"
    GARBLED = "garbled"
    GONE = "gone"


class Outcome(Enum):
    """How a call ended."""

    DONE = "done"
    FAILED = "failed"
    TIMED_OUT = "timed out"
    CANCELLED = "cancelled"
    NOT_RUN = "not run"
    """The harness answered it: no such tool, arguments that are not JSON, a limit, a repeat."""
    UNKNOWN = "unknown"
    """It was running when the process died; it may or may not have taken effect."""


class Verdict(Enum):
    """Whether a call may run, as a person or a rule put it."""

    ALLOWED = "allowed"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Attached:
    """Something a tool returned that is no text: an image, a file."""

    media: str
    size: int
    blob: str
    """Where the journal keeps it."""


class Purpose(Enum):
    """What a request is for: a round, the end of a run, rounds that leave the window."""

    WORK = "work"
    CONCLUDE = "conclude"
    SUMMARISE = "summarise"


# --- from the world -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UserSpoke:
    """Begins a run; during a run, steers it."""

    text: str
    at: float
    settings: Settings | None = None
    """None: as in the run before. A message that steers a run does not change its settings."""


@dataclass(frozen=True, slots=True)
class ModelReplied:
    ask: int
    """The number of the request; a late reply is recognised by it."""
    reply: Reply
    at: float
    usage: Usage | None = None
    """None: the server did not say."""
    by: str = ""
    """The name of the fallback that answered in the place of the run's model; else empty."""
    notes: tuple[str, ...] = ()
    """What had to be done to get it: mended, tried again, asked elsewhere. For people."""


@dataclass(frozen=True, slots=True)
class ModelFailed:
    ask: int
    failure: Failure
    detail: str
    at: float
    window: int | None = None
    """Where the server said it."""
    tokens: int | None = None
    """Of the request, where it said that."""


USER = "user"


@dataclass(frozen=True, slots=True)
class Decided:
    """Someone said whether a call may run. It counts for the arguments that were asked about."""

    call_id: str
    verdict: Verdict
    at: float
    by: str = ""
    """`USER`, or the rule or mode that decided alone."""
    arguments: str = ""
    """What the person made of them, where they changed them; else empty."""
    grants: str = ""
    """A rule that counts from now on for the rest of the session; else empty."""
    words: str = ""
    """Why not, in the person's words."""


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """On disk before the tool runs: after a crash it tells a call that may have happened."""

    call_id: str
    at: float


@dataclass(frozen=True, slots=True)
class ToolFinished:
    call_id: str
    outcome: Outcome
    text: str
    """All of it. The model is shown a cut of this; people and the log keep the whole."""
    at: float
    attached: tuple[Attached, ...] = ()


@dataclass(frozen=True, slots=True)
class FileKept:
    """A file before a tool changed it; on disk before the change, which can so be taken back."""

    call_id: str
    path: str
    blob: str
    """Where the journal keeps what was in it; empty if there was no such file."""
    at: float
    mode: int = 0


@dataclass(frozen=True, slots=True)
class FilesRestored:
    """The user took changes back. The model is told, since it believes they are there."""

    paths: tuple[str, ...]
    at: float


@dataclass(frozen=True, slots=True)
class Charged:
    """What a call has spent so far on a model of its own; it is on the run's bill."""

    call_id: str
    usage: Usage
    at: float


@dataclass(frozen=True, slots=True)
class ToolsChanged:
    """A server of tools came or went."""

    tools: tuple[ToolSpec, ...]
    at: float
    shelved: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolsFound:
    """Shelved tools that the model looked for, and gets back."""

    names: tuple[str, ...]
    at: float


@dataclass(frozen=True, slots=True)
class Pinned:
    """A fact that must survive eviction: a plan, a working folder. Empty text unpins."""

    key: str
    text: str
    at: float


@dataclass(frozen=True, slots=True)
class CancelAsked:
    at: float


@dataclass(frozen=True, slots=True)
class TimeRanOut:
    """The driver's alarm. Set again for the conclusion, which is given up when it rings twice."""

    run: int
    """An alarm may ring late, when another run has begun."""
    at: float


@dataclass(frozen=True, slots=True)
class Waited:
    """Until now somebody was asked something. The time they took counts for nobody."""

    at: float


@dataclass(frozen=True, slots=True)
class Reopened:
    """Another process goes on with the session. The time in between counts for nobody."""

    at: float


# --- by the rules ---------------------------------------------------------------------------


class About(Enum):
    """What a warning is about; the count is the server's, of tokens."""

    COUNT = "count"
    STALE = "stale"
    SUMMARY = "summary"
    WINDOW = "window"


@dataclass(frozen=True, slots=True)
class Warned:
    """For the person, not for the model."""

    about: About
    text: str


@dataclass(frozen=True, slots=True)
class TaskCut:
    """The user's longest message does not fit, and nothing else can get smaller: the model is
    shown this many characters of it."""

    to: int


@dataclass(frozen=True, slots=True)
class ModelAsked:
    ask: int
    purpose: Purpose
    expected: int
    """Tokens of the request, as the gauge expects them."""


@dataclass(frozen=True, slots=True)
class CallsAdmitted:
    """These calls of the reply will be run; the others have been answered."""

    call_ids: tuple[str, ...]


class Why(Enum):
    """Why the model was nudged."""

    SILENT = "silent"
    MALFORMED = "malformed"
    CUT_SHORT = "cut short"
    ALL_FAILED = "all failed"


@dataclass(frozen=True, slots=True)
class Nudged:
    """The harness said something to the model; it stays in the history."""

    why: Why
    text: str


@dataclass(frozen=True, slots=True)
class ToolDropped:
    """A tool that only fails left the definitions for the rest of the run."""

    tool: str


@dataclass(frozen=True, slots=True)
class Steered:
    """What the user said during the run took its place in the history."""


@dataclass(frozen=True, slots=True)
class FollowedUp:
    """What the user said during the run, and the run did not get to, begins a run of its own."""


@dataclass(frozen=True, slots=True)
class Fading:
    """A result in the window that shrinks to so many characters; 0 leaves a digest."""

    position: int
    to: int = 0


@dataclass(frozen=True, slots=True)
class Evicted:
    """What left the window; the log still has it."""

    fading: tuple[Fading, ...] = ()
    dropped: int = 0
    """Leading entries of the window that became lines of the digest."""
    shelved: tuple[str, ...] = ()
    """Tools that leave the definitions until they are looked for or called."""


@dataclass(frozen=True, slots=True)
class Summarised:
    """A summary by the model, checked, that stands before the digest of the same rounds."""

    text: str


@dataclass(frozen=True, slots=True)
class EndDecided:
    """The run must end; all that is left is to say so honestly."""

    reason: StopReason
    detail: str


@dataclass(frozen=True, slots=True)
class RunStopped:
    reason: StopReason
    text: str
    """What the user gets. Never empty."""


FromTheWorld: TypeAlias = (
    UserSpoke | ModelReplied | ModelFailed | Decided | ToolStarted | ToolFinished | FileKept
    | FilesRestored | Charged | ToolsChanged | ToolsFound | Pinned | CancelAsked | TimeRanOut
    | Waited | Reopened
)  # fmt: skip
ByTheRules: TypeAlias = (
    Warned | TaskCut | ModelAsked | CallsAdmitted | Nudged | ToolDropped | Steered | FollowedUp
    | Evicted | Summarised | EndDecided | RunStopped
)  # fmt: skip
Event: TypeAlias = FromTheWorld | ByTheRules
