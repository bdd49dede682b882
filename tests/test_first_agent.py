"""The tutorial works: its programs are saved, started and killed as it says, and print what it says."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from holdfast.testing.pytest_plugin import StartsServers
from holdfast.testing.script import Says, calls, says
from holdfast.testing.server import Received

PAGE = (Path(__file__).parent.parent / "docs/tutorial/first-agent.md").read_text()
PROGRAMS = dict(re.findall(r"Save this as `(\w+\.py)`:\n\n```python\n(.*?)```", PAGE, re.DOTALL))
SHOWN: list[str] = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
HELLO, TOTAL, PAID, REMEMBERED, UNANSWERED, RESUMED = SHOWN
PROMPT = re.compile(r"You: |\[y/n\] ")


def answer(received: Received) -> Says:
    """What the model of the tutorial says, by what it was last told."""
    last = received.body["messages"][-1]
    match last["role"], last["content"]:
        case "user", str(text) if "hello" in text:
            return says("Hello, nice to meet you!")
        case "user", str(text) if "in all" in text:
            return calls("list_receipts")
        case "tool", str(text) if '"coffee"' in text:
            return calls("read_receipt", name="cofee")
        case "tool", str(text) if "no receipt" in text:
            return calls("read_receipt", name="coffee")
        case "tool", str(text) if "11.50" in text:
            return calls("read_receipt", name="train")
        case "tool", str(text) if "139.00" in text:
            return says("You spent 150.50 euros.")
        case "user", str(text) if "train" in text:
            return calls("pay", name="train")
        case "user", str(text) if "Pay the coffee" in text:
            return calls("pay", name="coffee")
        case "tool", str(text) if text == "coffee is paid":
            return says("The coffee is paid.")
        case "tool", str(text) if text == "train is paid":
            return says("The train is paid too.")
    return says("You paid the coffee.")


class Reader:
    """Somebody who does what the tutorial says, in a folder of their own."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.env = {**os.environ, "HOLDFAST_HOME": str(folder / "home"), "OLLAMA_HOST": url}
        for name, text in PROGRAMS.items():
            (folder / name).write_text(text)
        for commands in re.findall(r"```console\n(\$ mkdir.*?)```", PAGE, re.DOTALL):
            lines = [line.removeprefix("$ ") for line in commands.splitlines()]
            subprocess.run(["sh", "-ec", "\n".join(lines)], cwd=folder, check=True, timeout=10)

    def starts(self, program: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-W", "error", program],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def sees(self, program: str, *typed: str) -> str:
        """What is on the screen in the end, with what was typed in it."""
        with self.starts(program) as process:
            shown, wrong = process.communicate("".join(f"{line}\n" for line in typed), timeout=50)
        assert (process.returncode, wrong) == (0, "")
        lines = iter(typed)
        return PROMPT.sub(lambda prompt: f"{prompt[0]}{next(lines)}\n", shown)

    def is_killed_at_the_question(self, program: str, typed: str) -> str:
        with self.starts(program) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{typed}\n")
            process.stdin.flush()
            shown = until("[y/n] ", process.stdout)
            process.kill()
        return shown.replace("You: ", f"You: {typed}\n")


def until(end: str, stream: IO[str]) -> str:
    """What is written up to these words."""

    def read() -> Iterator[str]:
        text = ""
        while not text.endswith(end):
            one = stream.read(1)
            assert one, text
            text += one
            yield one

    return "".join(read())


@pytest.fixture
def reader(model_server: StartsServers, tmp_path: Path) -> Reader:
    settings: dict[str, Any] = {"kind": "ollama", "model": "qwen3:8b", "window": 16_384}
    return Reader(tmp_path, model_server(then=answer, **settings).url)


def test_all_of_the_tutorial_is_tested() -> None:
    assert [*PROGRAMS] == ["hello.py", "receipts.py", "total.py", "pay.py"]
    assert len(re.findall(r"```python", PAGE)) == len(PROGRAMS)


def test_the_first_steps(reader: Reader) -> None:
    assert reader.sees("hello.py") == HELLO
    assert reader.sees("total.py") == TOTAL


def test_paying_remembering_and_going_on_after_the_plug_was_pulled(reader: Reader) -> None:
    assert reader.sees("pay.py", "Pay the coffee.", "y") == PAID
    assert reader.sees("pay.py", "What did I just pay?") == REMEMBERED

    shown = reader.is_killed_at_the_question("pay.py", "Pay the train as well.")

    assert shown.splitlines() == [
        line + " " * ("[y/n]" in line) for line in UNANSWERED.splitlines()
    ]
    assert reader.sees("pay.py", "y") == RESUMED
    assert (reader.folder / "paid.txt").read_text() == "coffee\ntrain\n"
