"""The facts a run falls back on, and a forced answer held against them."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from holdfast.core.claims import UNVERIFIED, checked, summary_fault
from holdfast.core.effects import CallModel, Effect
from holdfast.core.events import (
    About,
    CancelAsked,
    Evicted,
    ModelAsked,
    ModelReplied,
    Outcome,
    Purpose,
    Reply,
    ToolStarted,
    Warned,
)
from holdfast.core.ledger import SHOWN, Ledger, Record, report
from holdfast.core.limits import Limits, Settings, StopReason
from holdfast.core.tools import ToolSpec
from holdfast.testing.script import Played, calls, play, says, several, wants


def ledger(*calls: tuple[str, str, Outcome, str]) -> Ledger:
    """Tool, arguments, outcome and what came back, for each call."""
    kept = Ledger()
    for number, (tool, what, outcome, detail) in enumerate(calls, 1):
        changed = tool in ("move_file", "send")
        kept = kept.adding(Record(f"c{number:08d}", tool, what, outcome, detail, changed=changed))
    return kept


DONE, FAILED, UNKNOWN = Outcome.DONE, Outcome.FAILED, Outcome.UNKNOWN


# --- the report -----------------------------------------------------------------------------


def test_a_run_without_calls_reports_that_nothing_was_touched() -> None:
    assert report(StopReason.OUT_OF_TIME, "The limit of 60 seconds is reached.", Ledger()) == (
        "The run stopped (out of time) without an answer from the model. "
        "The limit of 60 seconds is reached.\n"
        "No tool was called, and nothing was changed by one."
    )


def test_every_outcome_is_reported_under_its_own_title() -> None:
    kept = ledger(
        ("read", "path=a.txt", DONE, "Hello"),
        ("read", "path=b.txt", FAILED, "no such file"),
        ("ocr", "path=c.png", Outcome.TIMED_OUT, "no answer in 60 s"),
        ("send", "to=ana", UNKNOWN, "The process stopped"),
        ("read", "path=d.txt", Outcome.NOT_RUN, "the limit is reached"),
    )

    assert report(StopReason.OUT_OF_CALLS, "", kept).splitlines()[2:] == snapshot(
        [
            "Processed:",
            "- read(path=a.txt)",
            "Failed:",
            "- read(path=b.txt): no such file",
            "Outcome unknown, check before you repeat it:",
            "- ocr(path=c.png): no answer in 60 s",
            "- send(to=ana): The process stopped",
            "Not processed:",
            "- read(path=d.txt): the limit is reached",
            "No other tool was called in this run.",
        ]
    )


def test_a_call_of_unknown_outcome_is_not_counted_as_failed() -> None:
    kept = ledger(("send", "to=ana", UNKNOWN, "The process stopped"))

    assert "0 of 1 tool calls succeeded, 0 failed" in report(StopReason.CANCELLED, "", kept)


def test_a_result_that_came_late_puts_its_record_right_once() -> None:
    kept = ledger(("send", "to=ana", Outcome.TIMED_OUT, "Stopped"), ("read", "p=a", DONE, "Hello"))

    late = kept.finished_late("c00000001", DONE, "sent")
    again = late.finished_late("c00000001", FAILED, "twice").finished_late("c9", DONE, "who?")

    assert again == late
    assert report(StopReason.OUT_OF_TIME, "", late) == snapshot("""\
The run stopped (out of time) without an answer from the model.
What was really done: 2 of 2 tool calls succeeded, 0 failed, 0 were not run.
Processed:
- send(to=ana) (finished after the run gave up on it)
- read(p=a)
No other tool was called in this run.\
""")


def test_of_many_calls_the_newest_are_listed_and_the_others_counted() -> None:
    many = ledger(*(("read", f"n={number}", DONE, "") for number in range(SHOWN + 5)))

    assert report(StopReason.OUT_OF_CALLS, "", many).splitlines()[2:-1] == [
        "Processed:",
        "- (and 5 earlier calls)",
        *(f"- read(n={number})" for number in range(5, SHOWN + 5)),
    ]


def test_a_call_that_was_running_when_the_user_cancelled_may_have_happened() -> None:
    played = Played([], {}).user("mail Ana", Settings(tools=(ToolSpec(name="send"),)))
    played.only(
        ModelReplied(1, Reply(calls=(wants("send", to="ana"), wants("send", to="bo"))), 2.0)
    )
    played.only(ToolStarted("c00000001", 3.0))
    played.only(CancelAsked(4.0))

    titles = {"": ""}
    for line in played.stopped.text.splitlines():
        titles = {**titles, "": line} if line.endswith(":") else {**titles, line[:14]: titles[""]}
    assert titles["- send(to=ana)"] == "Outcome unknown, check before you repeat it:"
    assert titles["- send(to=bo):"] == "Not processed:"


# --- the check: what is honest --------------------------------------------------------------

FOLDER = "/home/ana/receipts"
LISTING = json.dumps(["coffee.txt", "office.txt", "hotel.pdf", "scan 04.png", "notes.md"])
COFFEE = (
    '{"vendor": "Blue Bottle Coffee", "total": 1284.5, "date": "2026-03-14", "id": "INV-20417"}'
)
SEEN = [
    "Sort my receipts into ~/sorted by month.",
    FOLDER,
    LISTING,
    COFFEE,
    "cannot read hotel.pdf",
]
KEPT = ledger(
    ("list_dir", f"path={FOLDER}", DONE, LISTING),
    ("read_file", f"path={FOLDER}/coffee.txt", DONE, COFFEE),
    ("move_file", f"source={FOLDER}/coffee.txt, target=/home/ana/sorted/coffee.txt", DONE, "moved"),
    ("ocr", f"path={FOLDER}/hotel.pdf", FAILED, "cannot read hotel.pdf"),
)
ARGUMENTS = ["/home/ana/sorted/coffee.txt", f"{FOLDER}/coffee.txt", f"{FOLDER}/hotel.pdf"]


def marked(text: str) -> list[str]:
    """The lines of `text` that are marked after the check."""
    lines = checked(text, KEPT, [*SEEN, *ARGUMENTS]).splitlines()
    return [line.removesuffix(UNVERIFIED) for line in lines if line.endswith(UNVERIFIED)]


@pytest.mark.parametrize(
    "text",
    [
        "I was unable to complete the task.",
        "I moved coffee.txt to /home/ana/sorted/coffee.txt.",
        "**coffee.txt** (INV-20417): Blue Bottle Coffee, 1284.5",
        "- coffee.txt: Blue Bottle Coffee, $1,284.50, 2026-03-14",
        "| coffee.txt | 1,284.5 | moved |",
        "1. coffee.txt: processed\n2. office.txt: not processed",
        "office.txt, notes.md: not processed",
        "hotel.pdf could not be read.",
        "Failed: hotel.pdf (cannot read hotel.pdf)",
        "2 of 5 files were looked at, and 1 was moved.",
        "The receipt is of 14 March 2026.",
        "Some receipts, e.g. office.txt, were not processed.",
        "The folder holds receipts and/or notes; input/output folders are the same.",
        "Moved receipts/coffee.txt as you asked.",
        "Moved ~/receipts/coffee.txt as you asked.",
        "Processed `coffee.txt`, i.e. read it and moved it.",
        "Progress: 1/5 files.",
        "No tool results are visible for office.txt.",
    ],
)
def test_an_honest_line_is_not_marked(text: str) -> None:
    assert marked(text) == []


def test_a_numbered_list_is_not_marked_for_its_numbers() -> None:
    fruits = [f"fruit_{letter}" for letter in "abcdefghijkl"]
    text = "\n".join(f"{number}. {fruit}" for number, fruit in enumerate(fruits, 1))

    assert checked(text, ledger(("list", "", DONE, "")), fruits) == text


@pytest.mark.parametrize(
    "text",
    [
        "- taxi.pdf: processed",
        "The invoice is in /home/ana/archive/2027.",
        "Read lunch.txt: total $42.17",
        "The total is $9,999.00.",
        "The total is 284.5.",
        "I looked at 57 receipts.",
        "The invoice number is INV-99999.",
        "It was paid on 2027-01-31.",
        "The receipts are in ice.txt.",
        "Backup written to receipts.7z.",
    ],
)
def test_an_invented_name_or_number_is_marked(text: str) -> None:
    assert marked(text) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "Deleted office.txt.",
        "Renamed office.txt and notes.md.",
        "- office.txt: extracted the total",
        "Moved office.txt to ~/sorted without problems.",
        "Converted notes.md, no errors.",
        "Processed hotel.pdf.",
        "Processed coffee.txt and office.txt.",
    ],
)
def test_a_deed_on_a_file_that_was_only_listed_or_failed_is_marked(text: str) -> None:
    assert marked(text) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "Renamed coffee.txt to office.txt; nothing failed.",
        "I have renamed all files and sent the report to the customer.",
        "coffee.txt -> office.txt: done",
        "I deleted everything.",
    ],
)
def test_a_change_is_marked_where_no_call_changed_anything(text: str) -> None:
    only_read = ledger(("read_file", f"path={FOLDER}/coffee.txt", DONE, COFFEE))

    assert checked(text, only_read, SEEN) == text + UNVERIFIED


def test_what_a_heading_says_holds_for_the_list_below_it() -> None:
    only_listed = ledger(("list_dir", f"path={FOLDER}", DONE, LISTING))

    assert checked("Read these:\n- office.txt\n\nIn the folder: notes.md", only_listed, SEEN) == (
        f"Read these:\n- office.txt{UNVERIFIED}\n\nIn the folder: notes.md"
    )


def test_where_no_call_succeeded_every_deed_is_marked() -> None:
    nothing = ledger(("ocr", f"path={FOLDER}/hotel.pdf", FAILED, "cannot read hotel.pdf"))

    assert checked("I have processed the receipts.", nothing, SEEN).endswith(UNVERIFIED)


def test_only_the_doubtful_line_of_an_answer_is_marked_and_its_markdown_stays() -> None:
    text = (
        "# Receipts\n\n| file | total |\n|---|---|\n| coffee.txt | 1284.5 |\n\n"
        "- coffee.txt: moved\n  - lunch.txt: moved\n\n```\ncoffee.txt\n```\n\n> Not processed: office.txt"
    )

    assert checked(text, KEPT, [*SEEN, *ARGUMENTS]) == text.replace(
        "  - lunch.txt: moved", "  - lunch.txt: moved" + UNVERIFIED
    )


def test_the_mark_on_a_row_of_a_table_can_be_seen_when_it_is_rendered() -> None:
    row = checked("| lunch.txt | 42.17 |", KEPT, SEEN)

    assert UNVERIFIED.strip() in row
    assert row.rstrip().endswith("|")  # what follows the last bar is a cell too many: not shown


# --- the check as a law ---------------------------------------------------------------------

WORDS = st.text("abc", min_size=1, max_size=3)
NAMES = st.builds("{}.{}".format, WORDS, st.sampled_from(["txt", "md", "pdf"]))
NUMBERS = st.integers(10, 3_000).map(str)
THINGS = st.lists(NAMES | NUMBERS, min_size=1, max_size=3)
SAID = st.sampled_from(["There are {} here.", "- {}", "**{}**", "| {} |", "Seen: {}"])


@given(st.lists(NAMES | NUMBERS, max_size=6), SAID, THINGS)
def test_whatever_an_unmarked_line_names_was_seen(
    known: list[str], said: str, things: list[str]
) -> None:
    line = said.format(", ".join(things))

    if checked(line, Ledger(), ["you are an agent", *known]) == line:
        assert set(things) <= set(known)


@given(st.lists(NAMES | NUMBERS, min_size=1, max_size=6), SAID, st.data())
def test_a_line_that_names_only_what_was_seen_is_not_marked(
    known: list[str], said: str, data: st.DataObject
) -> None:
    line = said.format(", ".join(data.draw(st.lists(st.sampled_from(known), min_size=1))))

    assert checked(line, Ledger(), [" ".join(known)]) == line


@given(st.text(max_size=200))
def test_the_check_adds_marks_and_changes_nothing_else(text: str) -> None:
    lines = checked(text, Ledger(), []).split("\n")

    plain = [line.replace(UNVERIFIED + " |", "|").removesuffix(UNVERIFIED) for line in lines]
    assert plain == (text.splitlines() or [""])


def test_an_endless_word_can_be_checked() -> None:
    endless = "a" * 2_000_000  # a pattern that goes back and forth over it would take days

    assert checked(endless, Ledger(), []) == endless


# --- the check in a run ---------------------------------------------------------------------

ONE_ROUND = Settings(tools=(ToolSpec(name="list", mutates=False),), limits=Limits(rounds=1))


def test_what_the_model_said_itself_is_no_evidence() -> None:
    script = [
        several(wants("list"), text="The total will be $9,999.25, see total.csv."),
        says("The total is $9,999.25."),
    ]
    played = play("add it up", script, {"list": "nothing"}, ONE_ROUND)

    assert played.stopped.text == "The total is $9,999.25." + UNVERIFIED


def test_what_the_model_only_asked_for_is_no_evidence_of_it() -> None:
    script = [calls("list", path="/secret/plan.txt"), says("There is a file plan.txt.")]
    played = play("look", script, {"list": OSError("no such folder")}, ONE_ROUND)

    assert played.stopped.text == "There is a file plan.txt." + UNVERIFIED


def test_all_files_of_one_call_count_as_touched() -> None:
    files = [f"/home/ana/inbox/receipt_of_the_{n}th_of_march.pdf" for n in range(11, 31)]
    said = "\n".join(f"- moved {file}" for file in files)
    tools = (ToolSpec(name="move"),)

    played = play(
        "sort",
        [calls("move", files=files), says(said)],
        {"move": "ok"},
        replace(ONE_ROUND, tools=tools),
    )

    assert played.stopped.text == said


# --- summaries ------------------------------------------------------------------------------

SUMMARY = (
    "Task: sort the receipts\nConstraints: none\nFiles: coffee.txt, receipts\n"
    "Decisions: by month\nNext: office.txt"
)


@pytest.mark.parametrize(
    ("summary", "wrong"),
    [
        (SUMMARY, ""),
        (
            SUMMARY.upper().replace("COFFEE.TXT", "coffee.txt").replace("OFFICE.TXT", "office.txt"),
            "",
        ),
        (SUMMARY.replace("Constraints: none\n", ""), "it has no line 'Constraints:'"),
        (SUMMARY + " taxi.pdf", "it names taxi.pdf, which nothing shows"),
        (SUMMARY.replace("coffee.txt, ", ""), f"it leaves out {FOLDER}/coffee.txt"),
    ],
)
def test_a_summary_keeps_its_five_lines_and_every_file_and_invents_none(
    summary: str, wrong: str
) -> None:
    kept = ledger(("read_file", f"path={FOLDER}/coffee.txt", DONE, COFFEE))

    assert summary_fault(summary, kept, SEEN) == wrong


READ = ToolSpec(name="read", mutates=False)
SUMMING = replace(
    Settings.for_window(4_096, system="You are an agent.", tools=(READ,)), summaries=True
)
GOOD = "Task: sort\nConstraints: none\nFiles: {files}\nDecisions: by month\nNext: the others"


class Summing(Played):
    """A model that reads file after file and sums up, when asked, in words given beforehand."""

    words = GOOD
    files: tuple[str, ...] = ()

    def perform(self, effect: Effect) -> list[Effect]:
        if isinstance(effect, CallModel) and effect.purpose is Purpose.SUMMARISE:
            self.script = [says(self.words.format(files=", ".join(self.files[-5:])))]
        elif isinstance(effect, CallModel):
            self.files = (*self.files, f"/in/{len(self.files)}.txt")
            done = len(self.files) > 20
            self.script = [says("done") if done else calls("read", path=self.files[-1])]
        return super().perform(effect)


def summed(words: str) -> Summing:
    played = Summing([], {"read": lambda call: f"{call.arguments} and so on, word for word. " * 90})
    played.words = words
    played.user("sort the receipts", SUMMING)
    return played


def head(played: Played) -> str:
    return "\n".join(entry.message.text for entry in played.requests[-1].head)


def test_the_model_is_asked_before_rounds_leave_and_its_good_summary_stays() -> None:
    played = summed(GOOD)

    asked = [isinstance(e, ModelAsked) and e.purpose is Purpose.SUMMARISE for e in played.events]
    left = [isinstance(e, Evicted) and e.dropped > 0 for e in played.events]
    assert -1 < asked.index(True) < left.index(True)
    assert [event for event in played.events if isinstance(event, Warned)] == []
    assert head(played).startswith("[Summary of earlier work]\nTask: sort\n")
    assert "\n- op=read(path=/in/" in head(played)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("I read some files.", "it has no line 'Task:'"),
        (GOOD + " taxi.pdf", "it names taxi.pdf, which nothing shows"),
        (GOOD + " word" * 2_000, "it is too long"),
        ("", "it is empty"),
        ('{{"name": "read", "arguments": {{}}}}', "it looks like a tool call written as text"),
    ],
)
def test_a_bad_summary_is_refused_with_a_word_to_the_user_and_the_digest_is_used(
    words: str, why: str
) -> None:
    played = summed(words)

    warnings = [event for event in played.events if isinstance(event, Warned)]
    assert warnings[0] == Warned(About.SUMMARY, f"The model's summary was not used: {why}.")
    assert "[Summary of earlier work]" not in head(played)
    assert "\n- op=read(path=/in/" in head(played)
