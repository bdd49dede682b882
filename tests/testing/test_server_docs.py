"""What the page about the misbehaving server says is what it does."""

import json
import re
import shlex
from pathlib import Path

import pytest

from holdfast.testing.server import Kind, ModelServer, helpful
from tests.testing.client import ask

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


def test_what_the_page_sends_with_curl_is_taken_without_complaint() -> None:
    (written,) = re.findall(r"^curl .*?(?=```)", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    _, url, is_header, header, is_data, data = shlex.split(written.replace("\\\n", ""))
    name, _, value = header.partition(": ")
    path = url.removeprefix("http://127.0.0.1:11434")

    with ModelServer(helpful, kind=Kind.OLLAMA) as server:
        answer = ask(server, path=path, body=json.loads(data), headers={name: value})

    assert (is_header, name, value, is_data) == ("-H", "Content-Type", "application/json", "-d")
    assert answer.json["choices"][0]["message"]["content"] == "You said: Hi"
    assert server.complaints == []


def test_the_page_names_every_kind() -> None:
    assert re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE) == [
        kind.name for kind in Kind
    ]
