"""A journal on disk, and a folder to work in."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.journal.sqlite import SqliteJournal


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[SqliteJournal]:
    kept = SqliteJournal(tmp_path / "journal.sqlite")
    yield kept
    await kept.aclose()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder
