"""`python -m holdfast.testing.server`: run the server by hand, and point any agent at it."""

import errno
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from difflib import get_close_matches
from functools import partial

from holdfast.testing.printing import printing
from holdfast.testing.script import says
from holdfast.testing.server.faults import FAULTS, MAKERS, VARIANTS, sentence
from holdfast.testing.server.faults.names import dashed
from holdfast.testing.server.kinds import Kind
from holdfast.testing.server.record import Received, told
from holdfast.testing.server.server import ModelServer
from holdfast.testing.server.turns import SOME_WORDS, Fault, helpful

WAIT = 3600.0
"""Seconds after which to look whether something came that was missed."""
LAST_PORT = 65_535


def main(argv: Sequence[str] | None = None) -> int:
    given = arguments().parse_args(argv)
    return printing(listed if given.list else partial(serve, given))


def arguments() -> ArgumentParser:
    parser = ArgumentParser(
        prog="python -m holdfast.testing.server",
        description="A model server that misbehaves as it is told. Without a fault it calls the "
        "first tool it is offered, and then says what the tool returned.",
    )
    parser.add_argument("--port", type=port, default=0, help="0, the default, takes a free one")
    parser.add_argument(
        "--kind",
        choices=[kind.value for kind in Kind],
        default=Kind.LLAMA_CPP.value,
        help="whose habits and errors it has (default: %(default)s)",
    )
    parser.add_argument(
        "--window", type=window, default=4096, help="in tokens (default: %(default)s)"
    )
    parser.add_argument(
        "--model", default="test-model", help="the name it answers to (default: %(default)s)"
    )
    parser.add_argument("--key", help="the API key it wants")
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        type=fault,
        metavar="NAME",
        help="what goes wrong, by its name in --list; several are played in order, once each",
    )
    parser.add_argument("--say", metavar="TEXT", help="what it answers when nothing goes wrong")
    parser.add_argument("--list", action="store_true", help="list the faults and leave")
    return parser


def port(text: str) -> int:
    if not text.isdecimal() or int(text) > LAST_PORT:
        raise ArgumentTypeError(f"must be a whole number from 0 to {LAST_PORT}, and not {text}")
    return int(text)


def window(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"must be a whole number of at least 1, and not {text}")
    return int(text)


def fault(name: str) -> Callable[[], Fault]:
    """Of a name that stands for several, the first."""
    known = {**MAKERS, **FAULTS}
    if name in known:
        return known[name]
    close = get_close_matches(name, known)
    meant = f"did you mean: {', '.join(close)}? " if close else ""
    raise ArgumentTypeError(f"there is no fault {name!r}; {meant}--list shows all")


def listed() -> int:
    width = max(map(len, MAKERS))
    for name in MAKERS:
        print(f"{name:{width}}  {sentence(name)}")
        if name in VARIANTS:
            print(f"{f'{name}-...':{width}}  {', '.join(map(dashed, VARIANTS[name]))}")
    return 0


def serve(given: Namespace) -> int:
    then = helpful if given.say is None else says(given.say)
    server = ModelServer(
        *(due(make(), given.say) for make in given.fault),
        kind=given.kind,
        window=given.window,
        model=given.model,
        key=given.key,
        port=given.port,
        then=then,
    )
    with ExitStack() as running:
        try:
            running.enter_context(server)
        except OSError as wrong:
            print(without_port(given.port, wrong), file=sys.stderr)
            return 1
        article = "an" if given.kind.startswith(("a", "o", "lm")) else "a"
        print(f"{server.url} is {article} {given.kind} server. Ctrl-C ends it.", flush=True)
        shown: set[str] = set()

        def news() -> list[str]:
            return [line for line in lines_about(server.received) if line not in shown]

        while True:
            with suppress(TimeoutError):
                server.wait_for(news, WAIT)
            for line in news():
                shown.add(line)
                print(line, flush=True)


def without_port(number: int, wrong: OSError) -> str:
    taken = wrong.errno == errno.EADDRINUSE
    why = "is taken" if taken else f"cannot be had ({wrong.strerror})"
    return f"Port {number} {why}; choose another, or leave --port out."


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
