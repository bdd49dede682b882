"""Real models on real servers: llama.cpp's own, and the engine of the extra `local`.

They have a target of their own, `make test-real MODELS=folder`, since the weights are large and the
models slow. The folder holds the GGUF files, at any depth; llama-server is looked for where
LLAMA_SERVER says, on the path, and in the folder.
"""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from time import monotonic, sleep
from typing import Protocol
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from anyio.from_thread import start_blocking_portal

from holdfast.models.base import ModelError
from holdfast.models.local.engine import Engine, check_engine

HOW = "real models are tested with: make test-real MODELS=folder"
QWEN = "qwen2.5-coder-1.5b-instruct.gguf"
SMOL = "SmolLM2-135M-Instruct.Q4_1.gguf"
KEY = "a-key-for-tests"
WINDOW = 4_096
LOADING = 120
"""Seconds that a server may take to load its model."""
LOOK = 0.1
"""Seconds between two questions whether it has."""


class StartsEngine(Protocol):
    """Starts a server with these weights, for one request at a time, and gives its address."""

    def __call__(self, weights: str, window: int = WINDOW) -> str: ...


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not os.environ.get("HOLDFAST_MODELS"):
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=HOW))


def found(weights: str) -> Path:
    """The file, or a skipped test."""
    folder = os.environ["HOLDFAST_MODELS"]
    for file in sorted(Path(folder).rglob(weights)):
        return file
    pytest.skip(f"{weights} is not in {folder}")


def llama_server() -> str:
    inside = sorted(Path(os.environ["HOLDFAST_MODELS"]).rglob("llama-server"))
    named = os.environ.get("LLAMA_SERVER") or shutil.which("llama-server")
    if not named and not inside:
        pytest.skip("there is no llama-server, neither on the path nor in the folder of models")
    return named or str(inside[0])


@contextmanager
def by_llama_server(file: Path, window: int) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    command = (llama_server(), "-m", str(file), "--host", "127.0.0.1", "--port", port)
    options = ("-c", str(window), "-t", "1", "-np", "1", "--poll", "0", "--api-key", KEY)
    with (
        TemporaryFile("a+b") as log,
        subprocess.Popen((*command, *options), stdout=log, stderr=log) as process,
    ):
        try:
            url = f"http://127.0.0.1:{port}"
            wait_for(process, f"{url}/health")
            yield url
        finally:
            process.kill()


def wait_for(process: subprocess.Popen[bytes], health: str) -> None:
    last = monotonic() + LOADING
    while process.poll() is None and monotonic() < last:
        try:
            with urlopen(health, timeout=LOADING):
                return
        except (URLError, ConnectionError):  # not there yet, or still loading
            sleep(LOOK)
    pytest.fail(f"{health} never answered")


@contextmanager
def by_our_engine(file: Path, window: int) -> Iterator[str]:
    skip_without_engine()
    engine = Engine(file, window=window, threads=1, key=KEY)
    with start_blocking_portal() as portal:
        try:
            yield portal.call(engine.start).url
        finally:
            portal.call(engine.aclose)


def skip_without_engine() -> None:
    try:
        check_engine()
    except ModelError as wrong:
        pytest.skip(wrong.detail)


@pytest.fixture(params=[by_llama_server, by_our_engine], ids=["llama-server", "xllamacpp"])
def started(request: pytest.FixtureRequest) -> Iterator[StartsEngine]:
    """On each engine. What a test starts ends with it."""
    with ExitStack() as servers:

        def start(weights: str, window: int = WINDOW) -> str:
            url: str = servers.enter_context(request.param(found(weights), window))
            return url

        yield start
