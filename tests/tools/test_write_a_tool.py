"""What the page about writing tools says is what happens."""

import re
from pathlib import Path

import pytest

from holdfast.tools.function import Options

PAGE = Path(__file__).parents[2] / "docs/how-to/write-a-tool.md"


def test_the_examples_run_and_print_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    page = PAGE.read_text()
    examples = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    known: dict[str, object] = {}  # an example may use what one before it has defined

    for example in examples:
        exec(compile(example, PAGE.name, "exec"), known)

    shown = re.findall(r"It prints\n\n```text\n(.*?)```", page, re.DOTALL)
    assert (len(examples), len(shown)) == (5, 4)
    assert capsys.readouterr().out == "".join(shown)


def test_the_page_names_every_option() -> None:
    rows = re.findall(r"^\| (`.*?) \|", PAGE.read_text(), re.MULTILINE)

    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == {
        *Options.__annotations__
    }
