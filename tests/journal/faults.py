"""A process of its own that writes to a journal, as the tests of crashes and full disks need it.

    python -m tests.journal.faults write PATH SESSION [--size N] [--file-limit BYTES] [--nobody]

It prints one line a fact: `open SEQ`, `ack SEQ`, `error SENTENCE`.
"""

import argparse
import os
import resource
import signal
import sys

import anyio

from holdfast.core.events import Event, Pinned
from holdfast.core.machine import replay
from holdfast.core.state import NEW
from holdfast.journal.base import JournalError
from holdfast.journal.sqlite import SqliteJournal


def pinned(number: int, size: int) -> Event:
    return Pinned(f"k{number % 8}", f"{number} {os.urandom(size // 2).hex()}", float(number))


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def write(path: str, session: str, size: int) -> None:
    journal = SqliteJournal(path)
    try:
        book = await journal.create(session=session)
        say(f"open {book.seq}")
        state = book.state if book.seq else NEW
        while True:
            events = [pinned(book.seq + 1, size), pinned(book.seq + 2, size)]
            state = replay(events, state)
            await book.append(events, state).wait()
            say(f"ack {book.seq}")
    except JournalError as wrong:
        say(f"error {type(wrong).__name__}: {wrong}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["write"])
    parser.add_argument("path")
    parser.add_argument("session")
    parser.add_argument("--size", type=int, default=200)
    parser.add_argument("--file-limit", type=int)
    parser.add_argument("--nobody", action="store_true")
    given = parser.parse_args()
    if given.nobody:
        anyio.run(anyio.sleep, 0)  # imports what nobody may not read
        os.setuid(65534)
    if given.file_limit:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (given.file_limit, given.file_limit))
    anyio.run(write, given.path, given.session, given.size)


if __name__ == "__main__":
    main()
