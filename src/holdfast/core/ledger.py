"""What really ran, as the harness saw it: the facts a run can always fall back on.

The model is not asked. A run that cannot get an honest answer out of a model ends with the
report made here, and an answer that was forced is held against these records by `claims`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from holdfast.core.copies import replace
from holdfast.core.events import Outcome
from holdfast.core.limits import StopReason
from holdfast.core.trail import Trail

SHOWN = 40
"""Calls that a report lists one by one; the others are counted."""


@dataclass(frozen=True, slots=True)
class Record:
    call_id: str
    tool: str
    what: str
    """The arguments, in a line."""
    outcome: Outcome
    detail: str
    """What came back, in a line."""
    changed: bool = False
    """Its tool may have changed something."""
    names: tuple[str, ...] = ()
    """Files that its arguments name, also where `what` is too short to show them."""
    late: bool = False
    """It finished after the run had given up on it."""


@dataclass(frozen=True, slots=True)
class Ledger:
    records: Trail[Record] = field(default_factory=Trail)
    done: int = 0
    failed: int = 0
    unknown: int = 0
    not_run: int = 0

    def adding(self, record: Record) -> "Ledger":
        return replace(
            self,
            records=self.records.adding(record),
            done=self.done + (record.outcome in PROCESSED),
            failed=self.failed + (record.outcome in FAILED),
            unknown=self.unknown + (record.outcome in UNKNOWN),
            not_run=self.not_run + (record.outcome in NOT_PROCESSED),
        )

    def finished_late(self, call_id: str, outcome: Outcome, text: str) -> "Ledger":
        """A call the run had given up on came back after all: the record is put right."""
        records = list(self.records)
        fixed = [
            replace(record, outcome=outcome, detail=first_words(text), late=True)
            if record.call_id == call_id and record.outcome in GIVEN_UP and not record.late
            else record
            for record in records
        ]
        if fixed == records:
            return self
        again = Ledger()
        for record in fixed:
            again = again.adding(record)
        return again


def first_words(text: str) -> str:
    """The beginning of a result, in a line."""
    return " ".join(text[:400].split())[:200]


PROCESSED = (Outcome.DONE,)
FAILED = (Outcome.FAILED,)
UNKNOWN = (Outcome.UNKNOWN, Outcome.TIMED_OUT)
NOT_PROCESSED = (Outcome.NOT_RUN, Outcome.CANCELLED)
GIVEN_UP = (Outcome.CANCELLED, Outcome.TIMED_OUT, Outcome.UNKNOWN)


# --- the report -----------------------------------------------------------------------------


def report(reason: StopReason, detail: str, ledger: Ledger) -> str:
    """The text of a run that got no usable answer: only what the harness knows."""
    told = f"The run stopped ({reason.value}) without an answer from the model. {detail}".strip()
    if not len(ledger.records):
        return f"{told}\nNo tool was called, and nothing was changed by one."
    counts = (
        f"{ledger.done} of {len(ledger.records)} tool calls succeeded",
        f"{ledger.failed} failed",
        f"{ledger.unknown} ended nobody knows how" if ledger.unknown else "",
        f"{ledger.not_run} were not run",
    )
    lines = [
        *listed("Processed", ledger, PROCESSED),
        *listed("Failed", ledger, FAILED),
        *listed("Outcome unknown, check before you repeat it", ledger, UNKNOWN),
        *listed("Not processed", ledger, NOT_PROCESSED),
    ]
    return "\n".join(
        (
            told,
            f"What was really done: {', '.join(filter(None, counts))}.",
            *lines,
            "No other tool was called in this run.",
        )
    )


def listed(title: str, ledger: Ledger, outcomes: tuple[Outcome, ...]) -> Iterator[str]:
    records = [record for record in ledger.records if record.outcome in outcomes]
    if not records:
        return
    yield f"{title}:"
    if len(records) > SHOWN:
        yield f"- (and {len(records) - SHOWN} earlier calls)"
    for record in records[-SHOWN:]:
        late = " (finished after the run gave up on it)" if record.late else ""
        said = f": {record.detail}" if record.outcome is not Outcome.DONE and record.detail else ""
        yield f"- {record.tool}({record.what}){late}{said}"
