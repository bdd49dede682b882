"""The first code that people see runs, and prints what it is said to print."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.testing.pytest_plugin import StartsServers
from holdfast.testing.script import calls, says

ROOT = Path(__file__).parent.parent
ANSWER = "No, it is sunny in Lisbon."


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_first_code_on_a_page_runs(
    model_server: StartsServers, tmp_path: Path, page: str
) -> None:
    text = (ROOT / page).read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    shown = re.search(r"```python\n.*?```\n\n```text\n(.*?)```", text, re.DOTALL)
    server = model_server(
        calls("weather", city="Lisbon"), says(ANSWER), kind="ollama", model="qwen3:8b"
    )
    env = {**os.environ, "HOLDFAST_HOME": str(tmp_path), "OLLAMA_HOST": server.url}

    done = subprocess.run(
        (sys.executable, "-W", "error", "-c", code),
        capture_output=True,
        text=True,
        env=env,
        cwd=tmp_path,
        check=False,
        timeout=50,
    )

    assert (done.stdout, done.stderr) == (shown[1] if shown else f"{ANSWER}\n", "")
    assert server.chats[-1].body["messages"][-1]["content"] == "It is sunny in Lisbon."
