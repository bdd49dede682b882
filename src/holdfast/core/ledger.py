"""What really ran, as the harness saw it: the facts a run can always fall back on.

The model is not asked. A run that cannot get an honest answer out of a model ends with the
report made here, and an answer that was forced is held against what is written here.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from holdfast.core.events import Outcome
from holdfast.core.limits import StopReason
from holdfast.core.trail import Trail

SHOWN = 40
"""Calls that a report lists one by one; the others are counted."""
UNVERIFIED = " [not verified: no tool result shows this]"


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
    earlier = any("earlier calls)" in line for line in lines)
    last = "was not touched by a tool in this run."
    return "\n".join(
        (
            told,
            f"What was really done: {', '.join(filter(None, counts))}.",
            *lines,
            f"Anything that {'no call' if earlier else 'is not'} "
            f"{'of this run, listed or earlier, names' if earlier else 'listed here'} {last}",
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


# --- the check ------------------------------------------------------------------------------

NAME = re.compile(r"[\w~@./\\-]*\w\.[A-Za-z]\w{0,7}\b|(?:~|\.{0,2})?/[\w./-]+\w")
"""File names and paths. A sentence's last word before a full stop is not one: it has no ending."""
NUMBER = re.compile(r"(?<![\w.,/-])[$€£]?(\d(?:[\d.,:]*\d)?)(?![\w/-])")
LISTED = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
"""The mark of a list item, which is no claim."""
CHANGE = re.compile(
    r"\b(?:renam|mov|cop|delet|remov|creat|writ|wrot|sav|sen[dt]|mail|updat|edit|upload|add|"
    r"insert|replac|modif|chang|fix|merg|book|cancel)\w*",
    re.IGNORECASE,
)
DEED = re.compile(
    CHANGE.pattern + r"|\b(?:read|extract|process|convert|download|ran|run|execut|scan|check|"
    r"sort|complet|finish|analy[sz])\w*",
    re.IGNORECASE,
)
UNDONE = re.compile(
    r"\b(?:not|never|unable|unprocessed|unfinished|fail(?:ed|s|ure)?|could(?:n't| not)|cannot|"
    r"can't|did(?:n't| not)|was(?:n't| not)|were(?:n't| not)|skipped|remain\w*|pending)\b",
    re.IGNORECASE,
)


def checked(text: str, ledger: Ledger, seen: Iterable[str]) -> str:
    """A forced answer with every line marked that claims what neither ledger nor results hold.

    `seen` is what the model was shown by others. A name or number that is in none of it, nor in
    a call that succeeded, was invented. A deed done to a file needs more: a call that succeeded
    with this file, and that could change something if a change is claimed.
    """
    done = [record for record in ledger.records if record.outcome in PROCESSED]
    touched = "\n".join(f"{record.what} {record.detail}" for record in done)
    changed = "\n".join(f"{record.what} {record.detail}" for record in done if record.changed)
    evidence = "\n".join((*seen, touched, *(record.what for record in ledger.records)))
    numbers = {plain(number) for number in NUMBER.findall(f"{evidence}")}
    numbers |= {str(count) for count in counts_of(ledger)}
    marked = []
    for line in text.splitlines():
        claim = LISTED.sub("", line)
        names = NAME.findall(claim)
        where = changed if CHANGE.search(claim) else touched
        doubtful = (
            any(invented(name, evidence) for name in names)
            or any(plain(number) not in numbers for number in NUMBER.findall(claim))
            or (claims_a_deed(claim) and any(invented(name, where) for name in names))
        )
        marked.append(line + UNVERIFIED if doubtful else line)
    return "\n".join(marked)


def invented(name: str, evidence: str) -> bool:
    return name not in evidence and name.replace("\\", "/").rsplit("/", 1)[-1] not in evidence


def plain(number: str) -> str:
    """A number as it can be compared: 1,284.50 and 1284.5 are the same."""
    digits = number.replace(",", "")
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def counts_of(ledger: Ledger) -> Iterable[int]:
    """Numbers that an honest answer may count its calls with."""
    others = (ledger.failed, ledger.unknown, ledger.not_run, len(ledger.records))
    return (*range(ledger.done + 1), *others)


def claims_a_deed(line: str) -> bool:
    return DEED.search(line) is not None and UNDONE.search(line) is None


KEPT = ("Task:", "Constraints:", "Files:", "Decisions:", "Next:")


def left_out(summary: str, ledger: Ledger, seen: Iterable[str]) -> str:
    """What a summary by the model lacks or invents, in words for the person; empty if nothing."""
    evidence = "\n".join(seen)
    for heading in KEPT:
        if heading.lower() not in summary.lower():
            return f"it has no line '{heading}'"
    for name in NAME.findall(summary):
        if invented(name, evidence):
            return f"it names {name}, which nothing shows"
    touched = [record for record in ledger.records if record.outcome is Outcome.DONE][-5:]
    for record in touched:
        for name in NAME.findall(record.what):
            if name.rsplit("/", 1)[-1] not in summary:
                return f"it leaves out {name}"
    return ""
