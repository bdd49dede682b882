"""Models that fail, and the chain that answers all the same: real clients, real sockets."""

from random import Random

import pytest
from inline_snapshot import snapshot

from holdfast.core.events import Failure
from holdfast.models.base import ModelError, Piece, Said, TakenBack, Waiting
from holdfast.models.chat import Chat
from holdfast.models.fallback import Chain, Retries
from holdfast.testing.pytest_plugin import StartsServers
from holdfast.testing.script import says
from holdfast.testing.server import ModelServer, faults
from tests.models.asking import IMPATIENT, failure_line, ignore, line_of, request

QUICK = Retries(first_wait=0.001, longest_wait=0.004)
NOBODY = "http://127.0.0.1:9/v1"
"""A port where no server is."""
BROKEN_CALL = faults.http(
    500,
    '{"error":"error parsing tool call: raw=\'{\\"destination\\":\\"\\"/Users/x\\"}\', err=invalid"}',
)


def chat(server: ModelServer | str, name: str = "first") -> Chat:
    base = server if isinstance(server, str) else f"{server.url}/v1"
    return Chat(base, "test-model", name=name, waits=IMPATIENT)


async def told(chain: Chain) -> tuple[str, list[Piece]]:
    """What came of a request, and what people were shown meanwhile."""
    pieces: list[Piece] = []
    try:
        line = line_of(await chain.reply(request(), pieces.append))
    except ModelError as error:
        line = failure_line(error)
    await chain.aclose()
    return line, pieces


async def test_a_busy_server_is_asked_again_when_it_said(model_server: StartsServers) -> None:
    server = model_server(faults.busy(retry_after=0), faults.unavailable(), says("Here I am."))

    line, pieces = await told(Chain([chat(server)], QUICK))

    assert line == snapshot(
        "'Here I am.' (tried again, because HTTP 429: Rate limit reached for this model. "
        "Please try again later.) (tried again, because HTTP 503: The server is currently overloaded.)"
    )
    waits = [piece for piece in pieces if isinstance(piece, Waiting)]
    assert [wait.seconds for wait in waits][0] == 0
    assert 0.001 <= waits[1].seconds <= 0.002
    assert [wait.model for wait in waits] == ["first", "first"]


async def test_waits_double_up_to_their_bound_and_are_never_the_same(
    model_server: StartsServers,
) -> None:
    server = model_server(then=faults.unavailable())
    retries = Retries(first_wait=0.001, longest_wait=0.004, tries={Failure.BUSY: 6})

    _, pieces = await told(Chain([chat(server)], retries, Random(7)))

    waits = [piece.seconds for piece in pieces if isinstance(piece, Waiting)]
    longest = (0.001, 0.002, 0.004, 0.004, 0.004)
    assert all(most / 2 <= wait <= most for wait, most in zip(waits, longest, strict=True))
    assert len(set(waits)) == len(waits)
    assert len(server.chats) == 6


async def test_a_wait_that_is_too_long_is_not_waited_for(model_server: StartsServers) -> None:
    first, second = model_server(faults.busy(retry_after=3600)), model_server(says("I can."))

    line, _ = await told(Chain([chat(first), chat(second, "second")]))

    assert line == snapshot(
        "'I can.' [by second] (first gave no answer: HTTP 429: Rate limit reached for this model. "
        "Please try again later.)"
    )


async def test_a_garbled_reply_is_asked_for_in_another_way(model_server: StartsServers) -> None:
    server = model_server(BROKEN_CALL, says("Better."))

    line, _ = await told(Chain([chat(server)], QUICK))

    first, second = (each.body for each in server.chats)
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert line.startswith("'Better.' (tried again, because HTTP 500: error parsing tool call")
    assert first.get("seed") != second["seed"]
    assert second["messages"][:-1] == first["messages"][:-1]
    assert second["messages"][-1]["content"] == snapshot("""\
What is in the file?

Your last reply held a call that could not be read, so nothing was run. Its arguments were not valid JSON: {"destination":""/Users/x"}
If you meant this, write it so: {"destination":"/Users/x"}
Write the call again, with arguments that are one valid JSON object.\
""")


@pytest.mark.parametrize("fault", [faults.unknown_model(), faults.wrong_key(), faults.http(400)])
async def test_a_request_that_was_refused_is_not_repeated_but_the_chain_goes_on(
    fault: faults.Fault, model_server: StartsServers
) -> None:
    first, second = model_server(fault), model_server(says("I can."))

    line, _ = await told(Chain([chat(first), chat(second, "second")], QUICK))

    assert line.startswith("'I can.' [by second] (first gave no answer: HTTP 4")
    assert len(first.chats) == 1


async def test_a_server_that_is_gone_is_tried_and_left(model_server: StartsServers) -> None:
    second = model_server(says("I can."))

    line, pieces = await told(Chain([chat(NOBODY), chat(second, "second")], QUICK))

    assert line.count("tried again, because cannot connect to 127.0.0.1:9") == 2
    assert "[by second]" in line
    assert [type(piece) for piece in pieces] == [Waiting, Waiting, Said, Said]


async def test_who_gave_no_answer_is_asked_last_for_a_while(model_server: StartsServers) -> None:
    first = model_server(faults.wrong_key(), says("Now I can."))
    second = model_server(says("One."), says("Two."))
    chain = Chain([chat(first), chat(second, "second")], QUICK)

    lines = [line_of(await chain.reply(request(), ignore)) for _ in range(2)]
    assert [line[:6] for line in lines] == ["'One.'", "'Two.'"]
    assert len(first.chats) == 1
    await chain.aclose()

    rested = Chain([chat(first), chat(second, "second")], Retries(rest=0))
    assert line_of(await rested.reply(request(), ignore)) == "'Now I can.'"
    await rested.aclose()


async def test_loading_is_waited_for_and_is_no_failed_try(model_server: StartsServers) -> None:
    server = model_server(faults.loading(3), says("Loaded."))
    retries = Retries(tries={}, loading_wait=0.001)

    line, pieces = await told(Chain([chat(server)], retries))

    assert line == "'Loaded.'"
    assert pieces[:3] == [Waiting("first is loading", 0.001, "first")] * 3


@pytest.mark.parametrize("header", [{"Retry-After": "86400"}, {"retry-after-ms": "0.001"}])
async def test_loading_is_waited_for_as_long_as_we_say_and_not_the_server(
    header: dict[str, str], model_server: StartsServers
) -> None:
    server = model_server(then=faults.http(503, '{"error":"Loading model"}', header))
    retries = Retries(tries={}, loading=0.2, loading_wait=0.05)

    line, pieces = await told(Chain([chat(server)], retries))

    assert line.startswith("FAILED busy: HTTP 503: Loading model")
    waits = [piece.seconds for piece in pieces if isinstance(piece, Waiting)]
    assert all(wait <= 0.2 for wait in waits)
    assert len(server.chats) <= 6


async def test_a_model_that_never_loads_is_given_up(model_server: StartsServers) -> None:
    server = model_server(faults.loading(1_000))
    retries = Retries(tries={}, loading=0, loading_wait=0.001)

    line, _ = await told(Chain([chat(server)], retries))

    assert line == "FAILED busy: HTTP 503: Loading model <loading=True>"


async def test_what_broke_off_is_taken_back_before_it_is_said_again(
    model_server: StartsServers,
) -> None:
    server = model_server(faults.dropped_stream(says("Half of it."), after=3), says("All of it."))

    line, pieces = await told(Chain([chat(server)], QUICK))

    assert line.startswith("'All of it.' (tried again, because the answer of 127.0.0.1:")
    broke = next(at for at, piece in enumerate(pieces) if isinstance(piece, TakenBack))
    assert all(isinstance(piece, Said) for piece in pieces[:broke])
    said = "".join(piece.text for piece in pieces[broke:] if isinstance(piece, Said))
    assert said == "All of it."


async def test_a_request_that_was_too_long_goes_back_at_once(model_server: StartsServers) -> None:
    first, second = model_server(faults.overflow()), model_server(says("I could."))

    line, _ = await told(Chain([chat(first), chat(second, "second")], QUICK))

    assert line.startswith("FAILED overflow:")
    assert line.endswith("<window=4096 tokens=4097>")
    assert (len(first.chats), len(second.chats)) == (1, 0)


async def test_a_fallback_with_a_smaller_window_asks_for_a_shorter_request(
    model_server: StartsServers,
) -> None:
    second = model_server(faults.overflow(), window=2048)

    line, _ = await told(Chain([chat(NOBODY), chat(second, "second")], QUICK))

    assert line.startswith("FAILED overflow: first: cannot connect to 127.0.0.1:9")
    assert line.endswith("<window=2048>")


async def test_when_nobody_answers_the_failure_names_everyone(model_server: StartsServers) -> None:
    second = model_server(faults.wrong_key())

    line, _ = await told(Chain([chat(NOBODY), chat(second, "second")], QUICK))

    assert line == snapshot(
        "FAILED gone: first: cannot connect to 127.0.0.1:9: connection refused; second: HTTP 401: Invalid API Key"
    )


async def test_a_chain_has_the_name_of_its_first_model_and_someone_in_it() -> None:
    assert Chain([chat(NOBODY, "first"), chat(NOBODY, "second")]).name == "first"
    with pytest.raises(ValueError, match="at least one model"):
        Chain([])
