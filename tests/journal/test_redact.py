"""Secrets never reach the disk, and nothing else is touched."""

import json
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from holdfast.core.events import (
    Event,
    ModelReplied,
    Outcome,
    Pinned,
    Reply,
    RunStopped,
    ToolFinished,
    UserSpoke,
    WantedCall,
)
from holdfast.core.limits import Settings, StopReason
from holdfast.core.machine import replay
from holdfast.core.state import NEW
from holdfast.core.tools import ToolSpec
from holdfast.journal.redact import Redactor
from holdfast.journal.sqlite import SqliteJournal

from .values import any_event, any_text

letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def random(least: int, most: int, alphabet: str = letters) -> st.SearchStrategy[str]:
    """Told from a word by a digit in it."""
    return st.text(alphabet, min_size=least, max_size=most).map(lambda text: f"{text}7q")


PLANTED = st.one_of(
    random(24, 60).map(lambda s: (s, f"sk-{s}")),
    random(24, 60).map(lambda s: (s, f"sk-ant-api03-{s}")),
    random(36, 40).map(lambda s: (s, f"ghp_{s}")),
    random(40, 60).map(lambda s: (s, f"github_pat_{s}")),
    st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", min_size=16, max_size=16).map(
        lambda s: (s, f"AKIA{s}")
    ),
    random(20, 40).map(lambda s: (s, f"xoxb-{s}")),
    random(10, 40).map(lambda s: (s, f"eyJhbGciOiJI.eyJzdWIiOiIx.{s}")),
    random(30, 90).map(
        lambda s: (s, f"-----BEGIN RSA PRIVATE KEY-----\n{s}\n-----END RSA PRIVATE KEY-----")
    ),
    random(20, 60).map(lambda s: (s, f"Authorization: Bearer {s}")),
    random(20, 60).map(lambda s: (s, f"authorization: Basic {s}")),
    random(14, 60).map(lambda s: (s, f"OPENAI_API_KEY={s}")),
    random(14, 60).map(lambda s: (s, f'"api_key": "{s}"')),
    random(14, 60).map(lambda s: (s, f"client_secret = '{s}'")),
    random(14, 60).map(lambda s: (s, f"access_token: {s}")),
    random(8, 20).map(lambda s: (s, f"postgres://ana:{s}@db.example/x")),
    random(8, 20).map(lambda s: (s, f"password={s}")),
    st.just(("open sesame, friend", "say 'open sesame, friend' to enter")),
)
redactor = Redactor(values=["open sesame, friend"], environment={"MY_API_KEY": "from the shell"})
INNOCENT = (
    "commit 3f2a1b4c5d6e7f8091a2b3c4d5e6f708192a3b4c",
    "id: 123e4567-e89b-12d3-a456-426614174000",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "max_tokens=4096, tokens: 1234567890123, completion_tokens: 17",
    "password = getpass.getpass()",
    "token = tokenizer.encode(text)",
    "def login(user: str, password: str) -> Token:",
    "see http://localhost:8080/a@b and https://example.com/x?key=1",
    "the secret is to begin early: at 6",
    "ask-me-anything-about-this-long-dashed-word",
    "primary_key=customer_id_2026",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ",
    "Bearer of bad news",
    "Basic understanding of things",
)


@given(any_text, PLANTED, any_text)
def test_a_secret_is_replaced_wherever_it_stands(
    before: str, planted: tuple[str, str], after: str
) -> None:
    secret, text = planted
    assume(secret not in before + after)
    clean = redactor.text(f"{before} {text} {after}")
    assert secret not in clean
    assert "[secret: " in clean
    assert redactor.text(clean) == clean


@given(any_text, PLANTED)
def test_arguments_that_were_json_are_json_afterwards(
    before: str, planted: tuple[str, str]
) -> None:
    secret, text = planted
    assume(secret not in before)
    arguments = {"command": f"{before} {text}", "again": {"env": [text]}}
    for ascii_only in (True, False):
        clean = redactor.text(json.dumps(arguments, ensure_ascii=ascii_only))
        assert secret not in json.dumps(json.loads(clean))
        assert json.loads(clean).keys() == arguments.keys()


@pytest.mark.parametrize("text", INNOCENT)
def test_what_only_looks_like_a_secret_is_left_alone(text: str) -> None:
    assert redactor.text(text) is text


@given(any_event)
def test_an_event_without_secrets_is_the_same_object(event: Event) -> None:
    assert redactor.event(event) is event


def test_values_of_the_environment_are_secrets_by_their_names() -> None:
    found = Redactor(
        environment={
            "HOME_TOKEN": "abcdefgh-1",
            "DB_PASSWORD": "short",
            "PATH": "/usr/bin:/bin",
            "SSH_KEY": "/home/ana/.ssh/id",
        }
    )
    assert found.text("abcdefgh-1 short /usr/bin:/bin /home/ana/.ssh/id") == (
        "[secret: named] short /usr/bin:/bin /home/ana/.ssh/id"
    )


def test_every_text_of_an_event_is_redacted_and_what_is_sealed_goes_whole() -> None:
    key = "sk-abcdefghijklmnopqrstuvwx12"
    gone = "sk-[secret: api key]"
    event = ModelReplied(
        1,
        Reply(text=key, calls=(WantedCall("f", f'{{"k": "{key}"}}', key),), owed=f"x {key}"),
        1.0,
        notes=("fine", key),
    )
    assert redactor.event(event) == ModelReplied(
        1,
        Reply(text=gone, calls=(WantedCall("f", f'{{"k": "{gone}"}}', gone),), owed=""),
        1.0,
        notes=("fine", gone),
    )


def planted_log(secret: str, text: str) -> list[Event]:
    big = f"{'x ' * 20_000}{text}"
    tool = ToolSpec(name="t", description=text)
    return [
        UserSpoke(f"use {text}", 1.0, Settings(system=f"You know {text}", tools=(tool,))),
        ModelReplied(1, Reply(text=text, reasoning=text, owed=text), 2.0),
        ToolFinished("c1", Outcome.DONE, big, 3.0),
        Pinned("plan", text, 4.0),
        RunStopped(StopReason.CONCLUDED, text),
    ]


def bytes_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


@pytest.mark.parametrize("driver_redacts", [True, False])
@pytest.mark.parametrize("number", range(12))
async def test_no_file_of_a_journal_ever_holds_a_secret(
    tmp_path: Path, number: int, driver_redacts: bool
) -> None:
    """Database, write-ahead log, blobs and kept states, while it is open and afterwards."""
    secret = f"Zq{number}x9{letters[number : number + 30]}"
    shapes = (f"sk-{secret}", f"api_key={secret}", f"postgres://a:{secret}@h/d", secret)
    journal = SqliteJournal(tmp_path / "j.db", redact=Redactor(values=[secret], environment={}))
    book, state = await journal.create(), NEW
    for round_ in range(30):
        log = planted_log(secret, f"{shapes[number % 4]} {round_}")
        if driver_redacts:
            log = [journal.redacted(event) for event in log]
        state = replay(log, state)
        await book.append(log, state).wait()
    on_disk = bytes_in(tmp_path)
    assert secret.encode() not in on_disk
    assert b"secret: " in on_disk
    await book.close()
    again = await journal.open(book.id)
    if driver_redacts:
        assert again.state == state
    for stored in await journal.read(book.id):
        assert secret not in repr(stored)
    assert secret not in repr(again.state)
    await journal.aclose()
    assert secret.encode() not in bytes_in(tmp_path)


async def test_redaction_can_be_switched_off(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "j.db", redact=False)
    log: list[Event] = [Pinned("plan", "sk-abcdefghijklmnopqrstuvwx12", 1.0)]
    book = await journal.create()
    await book.append(log, replay(log)).wait()
    assert [stored.event for stored in await journal.read(book.id)] == log
    await journal.aclose()
