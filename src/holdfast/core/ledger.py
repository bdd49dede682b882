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
    late: bool = False
    """It finished after the run had given up on it."""


@dataclass(frozen=True, slots=True)
class Ledger:
    records: Trail[Record] = field(default_factory=Trail)
    done: int = 0
    failed: int = 0
    not_run: int = 0

    def adding(self, record: Record) -> "Ledger":
        done = record.outcome is Outcome.DONE
        not_run = record.outcome in (Outcome.NOT_RUN, Outcome.CANCELLED)
        return replace(
            self,
            records=self.records.adding(record),
            done=self.done + done,
            not_run=self.not_run + not_run,
            failed=self.failed + (not done and not not_run),
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


GIVEN_UP = (Outcome.CANCELLED, Outcome.TIMED_OUT, Outcome.UNKNOWN)


# --- the report -----------------------------------------------------------------------------


def report(reason: StopReason, detail: str, ledger: Ledger) -> str:
    """The text of a run that got no usable answer: only what the harness knows."""
    sentences = [
        f"The run stopped ({reason.value}) without an answer from the model. {detail}".strip()
    ]
    if not len(ledger.records):
        sentences.append("No tool was called, and nothing was changed by one.")
        return "\n".join(sentences)
    sentences.append(
        f"What was really done: {ledger.done} of {len(ledger.records)} tool calls succeeded, "
        f"{ledger.failed} failed, {ledger.not_run} were not run."
    )
    sentences += listed("Processed", ledger, (Outcome.DONE,))
    sentences += listed("Failed", ledger, (Outcome.FAILED, Outcome.TIMED_OUT))
    sentences += listed("Outcome unknown, check before you repeat it", ledger, (Outcome.UNKNOWN,))
    sentences += listed("Not processed", ledger, (Outcome.NOT_RUN, Outcome.CANCELLED))
    sentences.append("Anything that is not listed here was not touched by a tool in this run.")
    return "\n".join(sentences)


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
NUMBER = re.compile(r"(?<![\w.,/-])[$€£]?\d[\d.,:]*\d(?![\w/-])|(?<![\w.,/-])[$€£]?\d(?![\w.,/-])")
DEED = re.compile(
    r"\b(?:renam|mov|cop|delet|remov|creat|writ|wrote|written|sav|sent|send|updat|edit|extract|"
    r"process|convert|upload|download|add|insert|replac|modif|chang|fix|run|ran|execut|scan|"
    r"merg|sort|book|cancel|complet|finish)\w*",
    re.IGNORECASE,
)
UNDONE = re.compile(
    r"\b(?:not|never|no|un(?:able|processed|finished)|fail\w*|could(?:n't| not)|can(?:not|'t)|"
    r"did(?:n't| not)|skipp\w*|remain\w*|pending|left|without|missing|error\w*)\b",
    re.IGNORECASE,
)


def checked(text: str, ledger: Ledger, seen: Iterable[str]) -> str:
    """A forced answer with every line marked that claims what neither ledger nor results hold.

    `seen` is all the model was shown. A name or number that is in none of it was invented. A
    deed done to a file needs more: a call that succeeded with this file among its arguments.
    """
    evidence = "\n".join(seen)
    digits = evidence.replace(",", "")
    touched = "\n".join(
        f"{record.tool} {record.what} {record.detail}"
        for record in ledger.records
        if record.outcome is Outcome.DONE
    )
    marked = []
    for line in text.splitlines():
        names, numbers = NAME.findall(line), NUMBER.findall(line)
        doubtful = (
            any(invented(name, evidence) for name in names)
            or any(uncounted(number, evidence, digits, len(ledger.records)) for number in numbers)
            or (claims_a_deed(line) and any(name not in touched for name in names))
        )
        marked.append(line + UNVERIFIED if doubtful else line)
    return "\n".join(marked)


def invented(name: str, evidence: str) -> bool:
    return name not in evidence and name.replace("\\", "/").rsplit("/", 1)[-1] not in evidence


def uncounted(number: str, evidence: str, digits: str, calls: int) -> bool:
    """A number that nothing shows, and that does not count the calls of the run either."""
    bare = number.strip("$€£")
    plain = bare.replace(",", "")
    if len(plain) < 7 and plain.isdecimal() and int(plain) <= max(calls, 9):
        return False
    return bare not in evidence and plain not in digits


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
