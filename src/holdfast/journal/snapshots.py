"""States kept beside a log, so that a long session need not be folded from its beginning.

A snapshot is never the truth. It counts only for the very code that made it, and one that is
missing, foreign or damaged means nothing but a slower start.
"""

import sqlite3
import zlib
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from holdfast import core
from holdfast.core.copies import replace
from holdfast.core.state import NEW, State
from holdfast.journal import plain
from holdfast.journal.codec import decode_state, encode_state
from holdfast.journal.store import Claimed

OFTEN = 256
"""Events after which a state is kept in any case. To fold so many takes about 30 ms, and to keep a
state, in the writer's thread, some 4 ms: a round makes five events."""
AFTER_A_RUN = 128
"""Events after which one is kept when a run has ended: a session mostly goes on from there."""
T = TypeVar("T")
SHARED = 64
"""Different settings, and gauges that have learned nothing, of which one copy is enough."""
COMMON: dict[Any, Any] = {}


@cache
def fingerprint() -> str:
    """Of the code that folds and encodes; empty if its source is not there to be read."""
    folder = Path(core.__file__).parent
    sources = [*sorted(folder.glob("*.py")), Path(plain.__file__)]
    try:
        return sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()
    except OSError:
        return ""


def write(db: sqlite3.Connection, claimed: Claimed, seq: int, state: State) -> None:
    if not fingerprint():
        return
    body = zlib.compress(encode_state(state), 1)
    db.execute(
        "insert into snapshots select ?1, ?2, ?3, ?4 from sessions where n = ?1 and epoch = ?5"
        " on conflict (session) do update set seq = ?2, core = ?3, body = ?4",
        (claimed.n, seq, fingerprint(), body, claimed.epoch),
    )


def read(db: sqlite3.Connection, n: int, seq: int) -> tuple[int, State]:
    """The newest state that can be used, and the event it is after."""
    found = db.execute(
        "select seq, body from snapshots where session = ? and core = ? and seq <= ?",
        (n, fingerprint(), seq),
    ).fetchone()
    if found is None:
        return 0, NEW
    try:
        return int(found[0]), sharing(decode_state(zlib.decompress(found[1])))
    except (zlib.error, ValueError, TypeError):
        return 0, NEW


def sharing(state: State) -> State:
    """The state with parts that it has in common with others as the same objects: a thousand
    sessions of one agent have one set of settings."""
    if not state.gauge.reports:
        state = replace(state, gauge=shared(state.gauge))
    if state.run is None:
        return state
    run = replace(state.run, settings=shared(state.run.settings), tools=shared(state.run.tools))
    return replace(state, run=run)


def shared(value: T) -> T:
    if len(COMMON) > SHARED:
        COMMON.clear()
    kept: T = COMMON.setdefault(value, value)
    return kept
