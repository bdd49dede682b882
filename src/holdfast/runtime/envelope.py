"""The form in which watchers are told: envelopes, and the one object of a run that is over.

Names follow what other agents send, so that programs which read theirs can read ours: `turn` is
our run, `step` is one request to the model. What is told when is `feed`; who gets it is the bus.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite

from holdfast.core.limits import Spent, StopReason
from holdfast.core.messages import clean
from holdfast.core.state import Run, State

VERSION = 1
"""Of the envelopes. Fields and types may be added to it; what is there keeps its meaning."""
LAST = 253_402_300_799.0
"""The last second of the year 9999, which is the last that a stamp can name."""

STOP_REASONS = {
    StopReason.ANSWERED: "end_turn",
    StopReason.CONCLUDED: "no_progress",
    StopReason.OUT_OF_ROUNDS: "max_turn_requests",
    StopReason.OUT_OF_CALLS: "max_turn_requests",
    StopReason.OUT_OF_TOKENS: "max_tokens",
    StopReason.OUT_OF_MONEY: "budget",
    StopReason.OUT_OF_TIME: "budget",
    StopReason.NO_PROGRESS: "no_progress",
    StopReason.CONTEXT_EXHAUSTED: "context_exhausted",
    StopReason.CANCELLED: "cancelled",
    StopReason.REFUSED: "refusal",
    StopReason.MODEL_FAILED: "error",
}
"""Ours, which are finer, in the words that other programs know."""

SUBTYPES = {
    StopReason.ANSWERED: "success",
    StopReason.OUT_OF_ROUNDS: "error_max_turns",
    StopReason.OUT_OF_CALLS: "error_max_turns",
    StopReason.OUT_OF_MONEY: "error_max_budget_usd",
}
FAILED = "error_during_execution"

AWKWARD = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}
"""Legal inside JSON, but ends of a line to some who read line by line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    seq: int
    """Of the stored event it comes from, or of the last one before it."""
    at: float
    session: str
    turn: str | None
    """The run, as `t1`, `t2`; None before the first."""
    type: str
    body: Mapping[str, object]
    durable: bool = True
    """False: it was told only to those who watched, and a replay of the log does not have it."""

    def fields(self) -> dict[str, object]:
        """As JSON has it."""
        told: dict[str, object] = {
            "v": VERSION,
            "seq": self.seq,
            "ts": stamp(self.at),
            "session": self.session,
            "turn": self.turn,
            "type": self.type,
        }
        if not self.durable:
            told["ephemeral"] = True
        return {**told, **self.body}


def ndjson(envelope: Envelope) -> bytes:
    """One line, valid UTF-8, whatever is in it."""
    line = json.dumps(envelope.fields(), ensure_ascii=False, separators=(",", ":"))
    # Only the inside of strings can hold a surrogate or an awkward character.
    return clean(line).translate(AWKWARD).encode() + b"\n"


def stamp(at: float) -> str:
    """ISO, UTC, milliseconds. A clock that is out of its mind counts as not set."""
    when = datetime.fromtimestamp(at if 0 <= at <= LAST else 0.0, UTC)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def number(value: float | None) -> float | None:
    """A number that JSON can hold."""
    return value if value is not None and isfinite(value) else None


def result_object(session: str, state: State) -> dict[str, object]:
    """A run that has stopped, as one object."""
    run = state.run
    if run is None or run.stopped is None:
        raise ValueError(f"no run of the session {session} has stopped: there is no result yet")
    reason = run.stopped.reason
    return {
        "type": "result",
        "subtype": SUBTYPES.get(reason, FAILED),
        "is_error": reason is not StopReason.ANSWERED,
        "result": run.stopped.text,
        "session_id": session,
        "num_turns": run.spent.rounds,
        "duration_ms": duration(state, run),
        "usage": usage(run.spent),
        "total_cost_usd": run.spent.cost / 1e6,
        "stop_reason": STOP_REASONS[reason],
    }


def duration(state: State, run: Run) -> int:
    """Milliseconds of the run; the time a person took to answer is not among them."""
    return round((state.elapsed - run.began) * 1000)


def usage(spent: Spent) -> dict[str, object]:
    return {
        "input_tokens": spent.prompt,
        "output_tokens": spent.completion,
        "cache_read_input_tokens": spent.cached,
    }
