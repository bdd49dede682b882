"""The reference lists every key as it is, and the examples can be used."""

import re
import tomllib
from enum import Enum
from pathlib import Path

import pytest

from holdfast.settings import profile_names
from holdfast.settings.kinds import KEYS, Key
from holdfast.settings.reading import toml
from tests.settings.folders import Folders

DOCS = Path(__file__).parent.parent.parent / "docs"
ROW = re.compile(r"^\| `([\w.]+)` \| (.+?) \| `(.+?)` \| (.+) \|$", re.MULTILINE)


def test_every_key_stands_in_the_reference_with_what_it_takes_and_its_default() -> None:
    rows = ROW.findall((DOCS / "reference/settings.md").read_text())

    listed = [(name, takes, default) for name, takes, default, _ in rows]
    assert listed == [
        (key.name, key.kind.says, shown(key.default)) for key in in_order([row[0] for row in rows])
    ]
    assert len(rows) == len(KEYS)
    assert all(meaning.strip() for *_, meaning in rows)


def in_order(names: list[str]) -> list[Key]:
    return [KEYS[name] for name in names]


def shown(value: object) -> str:
    return toml(value.value if isinstance(value, Enum) else value)


def test_every_profile_stands_in_the_reference(folders: Folders) -> None:
    text = (DOCS / "reference/settings.md").read_text()
    listed = re.findall(r"^\| `([\w-]+)` \|", text.partition("## Profiles")[2], re.MULTILINE)

    assert sorted(listed) == profile_names(folders.root)


def test_the_files_in_the_how_to_can_be_used(folders: Folders) -> None:
    page = (DOCS / "how-to/configure.md").read_text()
    first, profile = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    folders.user(first)
    folders.profile("receipts", profile)

    loaded = folders.load(profile="receipts", strict=True)

    assert tomllib.loads(profile)["limits"]["rounds"] == 60
    assert loaded.values.limits.rounds == 40, "your file is stronger than a profile"
    assert loaded.values.model == ("ollama/qwen3:8b", "openai/gpt-5-mini")


def test_the_code_in_the_how_to_runs(
    folders: Folders, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (DOCS / "how-to/configure.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.setenv("HOLDFAST_HOME", str(folders.root))
    folders.project.mkdir()
    monkeypatch.chdir(folders.project)

    exec(compile(code, "configure.md", "exec"), {})

    assert "budget.window 8192 from the model\n" in capsys.readouterr().out


def test_the_sentence_in_the_how_to_is_the_one_people_get() -> None:
    page = (DOCS / "how-to/configure.md").read_text()
    (sentence,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    tests = (Path(__file__).parent / "test_sentences.py").read_text()

    assert " ".join(sentence.split()).replace("file .hold", "file project/.hold") in tests
