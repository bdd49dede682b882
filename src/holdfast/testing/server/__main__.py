"""`python -m holdfast.testing.server`: run the server by hand, and point any agent at it."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from holdfast.testing.printing import printing
from holdfast.testing.script import says
from holdfast.testing.server.faults import FAULTS, sentence
from holdfast.testing.server.kinds import Kind
from holdfast.testing.server.record import Received, told
from holdfast.testing.server.server import ModelServer
from holdfast.testing.server.turns import SOME_WORDS, Fault, helpful

WAIT = 3600.0
"""Seconds after which to look whether something came that was missed."""


def main(argv: Sequence[str] | None = None) -> int:
    given = arguments().parse_args(argv)
    return printing(listed if given.list else partial(serve, given))


def arguments() -> ArgumentParser:
    parser = ArgumentParser(
        prog="python -m holdfast.testing.server",
        description="A model server that misbehaves as it is told. Without a fault it calls the "
        "first tool it is offered, and then says what the tool returned.",
    )
    parser.add_argument("--port", type=int, default=0, help="0, the default, takes a free one")
    parser.add_argument("--kind", choices=[kind.value for kind in Kind], default="llama.cpp")
    parser.add_argument("--window", type=int, default=4096, help="in tokens")
    parser.add_argument("--model", default="test-model", help="the name it answers to")
    parser.add_argument("--key", help="the API key it wants")
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        choices=FAULTS,
        metavar="NAME",
        help="what goes wrong; several are played in order, once each",
    )
    parser.add_argument("--say", metavar="TEXT", help="what it answers when nothing goes wrong")
    parser.add_argument("--list", action="store_true", help="list the faults and leave")
    return parser


def listed() -> int:
    width = max(map(len, FAULTS))
    for name in FAULTS:
        print(f"{name:{width}}  {sentence(name)}")
    return 0


def serve(given: Namespace) -> int:
    then = helpful if given.say is None else says(given.say)
    server = ModelServer(
        *(due(FAULTS[name](), given.say) for name in given.fault),
        kind=Kind(given.kind),
        window=given.window,
        model=given.model,
        key=given.key,
        port=given.port,
        then=then,
    )
    with server:
        print(f"{server.url} is a {given.kind} server. Ctrl-C ends it.", flush=True)
        shown: set[str] = set()

        def news() -> list[str]:
            return [line for line in lines_about(server.received) if line not in shown]

        while True:
            with suppress(TimeoutError):
                server.wait_for(news, WAIT)
            for line in news():
                shown.add(line)
                print(line, flush=True)


def lines_about(requests: list[Received]) -> Iterator[str]:
    """What there is to tell by now. The number makes each line the only one of its kind."""
    for number, received in enumerate(requests, start=1):
        if received.answer:
            yield f"{number}  {told(received)}"
            yield from (f"{number}    {complaint}" for complaint in received.complaints)
        if received.hung_up:
            yield f"{number}    The client hung up."


def due(fault: Fault, text: str | None) -> Fault:
    """A fault of no words in particular spoils what would have been said."""
    if fault.of is not SOME_WORDS:
        return fault
    return replace(fault, of=helpful if text is None else says(text))


if __name__ == "__main__":
    sys.exit(main())
