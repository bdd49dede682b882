"""The `holdfast` command: reads the arguments, calls the one who can, returns an exit code.

Each command imports what it needs when it is chosen, so that `holdfast --version` stays quick.
"""

from argparse import ArgumentParser
from collections.abc import Sequence

from holdfast import __version__


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; `argv` is the command line unless given. The result is the exit code."""
    parser = arguments()
    match parser.parse_args(argv).command:
        case "demo":
            return demo()
        case _:
            parser.print_help()
            return 0


def arguments() -> ArgumentParser:
    parser = ArgumentParser(prog="holdfast", description="An agent loop that holds.")
    parser.add_argument("--version", action="version", version=f"holdfast {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command")
    commands.add_parser("demo", help="watch the loop work with a scripted model, offline")
    return parser


def demo() -> int:
    from holdfast.testing.demo import main as show
    from holdfast.testing.printing import printing

    return printing(show)
