"""What a text claims, held against what really happened.

A model that is made to conclude will say that it renamed files it never saw. So every line of a
forced answer is looked at: each name, id and number in it must have been shown to the model by
somebody else, and a deed done to a file needs a call that succeeded with this file. Lines that
fail are marked, not removed: they may be right for reasons that nobody can check here.
"""

import re
from collections.abc import Iterable, Iterator

from holdfast.core.instructions import HEADINGS
from holdfast.core.ledger import NOT_PROCESSED, PROCESSED, Ledger, Record

UNVERIFIED = " [not verified: no tool result shows this]"

WORD = re.compile(r"[$€£]?\d+(?:[.,:]\d+)+%?(?![\w-])|[^\s,;=()\[\]{}<>\"'`|*]+")
"""Numbers with what groups their digits, else whatever stands between blanks and brackets."""
LISTED = re.compile(r"^\s*(?:[-*+>]|\d+[.)])\s+")
"""The mark of a list item, which is no claim."""
NUMBER = re.compile(r"[-+]?[$€£]?\d[\d.,:]*%?")
RATIO = re.compile(r"\d+/\d+")
OF_SO_MANY = re.compile(r"\b\d{1,3} of (?:the |all |these )?(\d{1,3})\b")
"""'2 of 5 files': the second number counts what there is, which no call needs to have shown."""
ABBREVIATIONS = frozenset(("e.g", "i.e", "a.m", "p.m", "u.s", "n.b"))
LONGEST_NAME = 400
SMALL = 9
"""Up to here a number may count things that were seen without anyone naming the number."""

CHANGE = re.compile(
    r"\b(?:renam|mov(?:e|ed|ing)\b|cop(?:y|ied|ies)\b|delet|remov|creat|writ|wrot|sav(?:e|ed|ing)\b|"
    r"sen[dt]|updat|edit|upload|add(?:ed|s)?\b|insert|replac|modif|chang|fix|merg|book(?:ed)?\b|"
    r"cancel)\w*|->|→",
    re.IGNORECASE,
)
DEED = re.compile(
    CHANGE.pattern
    + r"|\b(?:read\b|extract|process(?!es\b)|convert|download|ran\b|execut|scan|check|"
    r"sort|complet|finish|analy[sz]|done\b)\w*",
    re.IGNORECASE,
)
CLAUSES = re.compile(r";|\. |,? but | while |, and ", re.IGNORECASE)
UNDONE = re.compile(
    r"\b(?:not|never|nothing|none of|neither|no \w+ (?:was|were)|unable|unprocessed|unfinished|"
    r"fail(?:ed|s|ure)?|could(?:n't| not)|cannot|"
    r"can't|did(?:n't| not)|was(?:n't| not)|were(?:n't| not)|skipped|remain\w*|pending)\b",
    re.IGNORECASE,
)


def words_in(text: str) -> Iterator[str]:
    """The words of a text, without what only surrounds them."""
    for word in WORD.findall(text):
        if bare := word.strip(".:!?…_"):
            yield bare


def names_in(text: str) -> frozenset[str]:
    """Files, paths and addresses."""
    return frozenset(word for word in words_in(text) if is_name(word))


def is_name(word: str) -> bool:
    if not ("." in word or "/" in word or "@" in word):
        return False
    if len(word) > LONGEST_NAME or NUMBER.fullmatch(word) or word.lower() in ABBREVIATIONS:
        return False
    if "@" in word or word.startswith(("/", "~/", "./", "../")):
        return len(word) > 2
    stem, dot, ending = basename(word).rpartition(".")
    return bool(dot and stem) and len(ending) <= 8 and ending.isalnum() and not ending.isdigit()


def basename(name: str) -> str:
    return name.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]


def plain(number: str) -> str:
    """A number as it can be compared: $1,284.50 and 1284.5 are the same, 03 and 3 too."""
    digits = number.strip("$€£%+-").replace(",", "")
    digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
    return digits.lstrip("0") or "0"


class Grounds:
    """Everything a claim can rest on, prepared once for all lines."""

    def __init__(self, ledger: Ledger, seen: Iterable[str]) -> None:
        done = [record for record in ledger.records if record.outcome in PROCESSED]
        text = "\n".join((*seen, *(f"{record.what} {record.detail}" for record in done)))
        self.words = frozenset(word.casefold() for word in words_in(text))
        self.numbers = {plain(group) for group in re.findall(r"\d[\d.,:]*\d|\d", text)}
        self.numbers |= {plain(group) for group in re.findall(r"\d+", text)}
        self.names = with_basenames(names_in(text).union(*(record.names for record in done)))
        self.asked = self.names | with_basenames(named(ledger.records))
        self.touched = with_basenames(named(done))
        self.changed = with_basenames(named(record for record in done if record.changed))
        self.done = len(done)
        self.changes = any(record.changed for record in done)
        missed = sum(record.outcome in NOT_PROCESSED for record in ledger.records)
        self.counts = {len(ledger.records), missed, len(ledger.records) - self.done - missed}

    def doubts(self, line: str, governed: re.Match[str] | None) -> bool:
        """Whether a line claims what nothing shows; `governed` is the deed of the heading that
        the line is an item of."""
        claim = LISTED.sub("", line)
        totals = {plain(total) for total in OF_SO_MANY.findall(claim)}
        return any(self.doubts_clause(part, governed, totals) for part in CLAUSES.split(claim))

    def doubts_clause(self, claim: str, governed: re.Match[str] | None, totals: set[str]) -> bool:
        undone = UNDONE.search(claim) is not None
        deed = None if undone else DEED.search(claim) or governed
        known = self.asked if undone else self.names
        if deed:
            changes = CHANGE.search(deed[0]) is not None
            known = self.changed if changes else self.touched
            if not self.done or (changes and not self.changes):
                return True
        for word in words_in(claim):
            if is_name(word):
                if word not in known and basename(word) not in known:
                    return True
            elif NUMBER.fullmatch(word):
                if plain(word) not in totals and self.uncounted(plain(word), deed=bool(deed)):
                    return True
            elif has_digit(word) and not RATIO.fullmatch(word):
                if word.casefold() not in self.words:
                    return True
        return False

    def uncounted(self, number: str, *, deed: bool) -> bool:
        """A number that nothing shows, and that does not count the calls of the run either."""
        if number in self.numbers:
            return False
        if not (number.isdecimal() and len(number) < 7):
            return True
        count = int(number)
        small = SMALL if not deed else 1
        return count > max(small, self.done) and count not in self.counts


def named(records: Iterable[Record]) -> frozenset[str]:
    """The files that the arguments of these calls name."""
    return frozenset[str]().union(
        *(names_in(record.what).union(record.names) for record in records)
    )


def with_basenames(names: frozenset[str]) -> frozenset[str]:
    return names | frozenset(map(basename, names))


def has_digit(word: str) -> bool:
    return any(map(str.isdigit, word))


def checked(text: str, ledger: Ledger, seen: Iterable[str]) -> str:
    """A forced answer, with every line marked that claims what nothing shows.

    `seen` is what the model was shown by others: its own words are no evidence.
    """
    grounds = Grounds(ledger, seen)
    lines: list[str] = []
    governed: re.Match[str] | None = None
    for line in text.splitlines():
        lines.append(marked(line) if grounds.doubts(line, governed) else line)
        if line.rstrip(" *_").endswith(":"):  # a heading: what it says holds for the list below
            governed = None if UNDONE.search(line) else DEED.search(line)
        elif not LISTED.match(line):
            governed = None
    return "\n".join(lines)


def marked(line: str) -> str:
    row = line.rstrip()
    if len(row) > 1 and row.startswith("|") and row.endswith("|"):  # behind the last bar of a
        return f"{row[:-1].rstrip()}{UNVERIFIED} |"  # table row nothing would be shown
    return line + UNVERIFIED


def summary_fault(summary: str, ledger: Ledger, seen: Iterable[str]) -> str:
    """What a summary lacks or invents, in words for the person; empty if nothing."""
    for heading in HEADINGS:
        if heading.lower() not in summary.lower():
            return f"it has no line '{heading}'"
    shown = Grounds(ledger, seen).names
    for name in sorted(names_in(summary)):
        if name not in shown and basename(name) not in shown:
            return f"it names {name}, which nothing shows"
    done = [record for record in ledger.records if record.outcome in PROCESSED]
    for record in done[-5:]:
        for name in sorted(names_in(record.what)):
            if basename(name) not in summary:
                return f"it leaves out {name}"
    return ""
