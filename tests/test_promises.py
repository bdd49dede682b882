"""What README and docs say is what the program does."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import holdfast
from holdfast.testing import simulate

ROOT = Path(__file__).parent.parent


def output_of(*command: str) -> str:
    done = subprocess.run(
        (sys.executable, "-m", *command),
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        check=True,
        timeout=60,
    )
    return done.stdout


def test_the_transcript_in_the_readme_is_what_the_demo_prints() -> None:
    readme = (ROOT / "README.md").read_text()
    shown = re.search(r"```text\n\$ make try\n(.*?)```", readme, re.DOTALL)
    assert shown is not None

    assert output_of("holdfast", "demo") == shown[1]


def test_the_demo_sends_its_mail_once() -> None:
    assert output_of("holdfast", "demo").endswith("Mails sent: 1.\n")


def test_the_version_is_said_without_loading_anything_else() -> None:
    loaded = "import sys; before = set(sys.modules); import holdfast.apps.cli as cli; "
    code = loaded + "print(*sorted(n for n in set(sys.modules) - before if 'holdfast' in n))"

    done = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["holdfast", "holdfast.apps", "holdfast.apps.cli"]
    assert output_of("holdfast", "--version").strip().endswith(holdfast.__version__)


def test_every_law_in_the_docs_names_a_test_that_exists() -> None:
    laws = (ROOT / "docs/explain/the-laws.md").read_text()
    tests = (ROOT / "tests/core/test_laws.py").read_text()
    named = re.findall(r"`(test_law_\d+_\w+)`", laws)

    assert {int(name.split("_")[2]) for name in named} == set(range(1, 11))
    assert [name for name in named if f"def {name}(" not in tests] == []


def test_every_page_of_the_docs_is_in_the_table_of_contents() -> None:
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}

    for contents in ("mkdocs.yml", "docs/index.md"):
        text = (ROOT / contents).read_text()
        assert {page for page in pages - {"index.md"} if page not in text} == set()


def test_the_examples_in_the_docs_run(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs/explain/try-the-loop.md").read_text()
    examples = re.findall(r"```python\n(.*?)```", page, re.DOTALL)

    for example in examples:
        exec(compile(example, "try-the-loop.md", "exec"), {})

    assert len(examples) == 2
    assert capsys.readouterr().out.splitlines()[-3:] == ["answered", "['Hello?']", "Hello."]


@pytest.mark.parametrize("arguments", ["--runs 0", "--runs -5", "--jobs 0", "--runs many"])
def test_a_wrong_number_for_the_simulation_gets_a_sentence(
    arguments: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        simulate.main(arguments.split())

    assert left.value.code == 2
    assert "must be a whole number of at least 1" in capsys.readouterr().err


def test_a_pipe_that_closes_ends_the_demo_without_a_traceback() -> None:
    reading, writing = os.pipe()
    os.close(reading)

    done = subprocess.run(
        (sys.executable, "-m", "holdfast", "demo"), stdout=writing, stderr=subprocess.PIPE
    )

    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_every_version_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = {
        line.split("==")[0].lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    }
    wanted = [name for extra in project["optional-dependencies"].values() for name in extra]

    names = {re.split(r"[^\w.-]", name)[0].lower().replace("_", "-") for name in wanted}
    assert names <= pinned
