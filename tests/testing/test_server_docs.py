"""What the page about the misbehaving server says is what it does."""

import re
from pathlib import Path

import pytest

from holdfast.testing.server import Kind

PAGE = Path(__file__).parents[2] / "docs/how-to/test-with-a-misbehaving-server.md"


def test_the_examples_run_and_print_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    page = PAGE.read_text()
    examples = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    known: dict[str, object] = {}  # an example may use what one before it has defined

    for example in examples:
        exec(compile(example, PAGE.name, "exec"), known)

    printed = capsys.readouterr().out
    shown = re.findall(r"It prints\n\n```text\n(.*?)```", page, re.DOTALL)
    assert (len(examples), len(shown)) == (7, 2)
    assert [each for each in shown if each not in printed] == []
    assert '"max_model_len":8192' in printed


def test_the_page_names_every_kind() -> None:
    assert re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE) == [
        kind.name for kind in Kind
    ]
