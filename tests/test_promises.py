"""What README and docs say is what the program does."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import holdfast

ROOT = Path(__file__).parent.parent


def output_of(*command: str) -> str:
    done = subprocess.run(
        (sys.executable, "-m", *command), capture_output=True, text=True, check=True, timeout=60
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
    contents = (ROOT / "mkdocs.yml").read_text()
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}

    assert {page for page in pages if page not in contents} == set()


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
