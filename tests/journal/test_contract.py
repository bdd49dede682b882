"""Every journal of ours keeps the contract."""

from pathlib import Path

import pytest

from holdfast.journal.base import Journal
from holdfast.journal.memory import MemoryJournal, Shelf
from holdfast.journal.owner import LIVING
from holdfast.journal.sqlite import SqliteJournal
from holdfast.testing.journal_contract import JournalContract, Place


class InMemory:
    def __init__(self) -> None:
        self.shelf = Shelf()

    def journal(self) -> Journal:
        return MemoryJournal(self.shelf)

    def dies(self, journal: Journal) -> None:
        assert isinstance(journal, MemoryJournal)
        self.shelf.living.discard(journal.token)


class InSqlite:
    def __init__(self, path: Path) -> None:
        self.path = path

    def journal(self) -> Journal:
        return SqliteJournal(self.path)

    def dies(self, journal: Journal) -> None:
        assert isinstance(journal, SqliteJournal)
        LIVING.discard(journal.token)


class TestMemory(JournalContract):
    @pytest.fixture
    def place(self) -> Place:
        return InMemory()


class TestSqlite(JournalContract):
    @pytest.fixture
    def place(self, tmp_path: Path) -> Place:
        return InSqlite(tmp_path / "journal.db")
