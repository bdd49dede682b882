"""The tool `run_shell`: one command of the shell, confined if so wished, and never left running.

What a command would do is told by `commands` and `reaching`, how it is held by `sandbox` and
`guarded`, how it is run by `processes`; here they become a tool. Whether it may run is decided by the gateway, as for every tool.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from anyio import to_thread

from holdfast.core.jsontext import dumped
from holdfast.core.tools import Keep, SideEffect, ToolSpec
from holdfast.tools.arguments import reader
from holdfast.tools.base import (
    Access,
    Arguments,
    BadArguments,
    Context,
    Output,
    Progress,
    Tool,
    ToolError,
)
from holdfast.tools.environment import cleaned_environment, for_reading
from holdfast.tools.guarded import Guarded
from holdfast.tools.processes import Ended, run
from holdfast.tools.reaching import changes_guarded, placed, touch
from holdfast.tools.sandbox import Bounds, Kind, NoSandbox, Sandbox

TIMEOUT = 120.0
LONGEST = 600.0
GRACE = 2.0
"""Seconds between asking a command to end and forcing it."""
DENIED = re.compile(r"permission denied|read-only file system|operation not permitted", re.I)
CONNECTING = re.compile(
    r"connect|socket|resolv|getaddrinfo|bind|listen|/dev/(tcp|udp)|https?:", re.I
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """How commands are run."""

    sandbox: Sandbox | None
    network: bool = True
    write: tuple[Path, ...] = ()
    """Folders beside the workspace in which a confined command may write."""
    read_only: bool = False
    """A confined command may not write in the workspace either."""
    read: tuple[Path, ...] | None = None
    """Where a confined command may read besides; None: everywhere."""
    timeout: float = TIMEOUT
    longest: float = LONGEST
    grace: float = GRACE
    secrets: frozenset[str] = frozenset()
    """Variables that commands get though their names look like secrets."""

    @property
    def places(self) -> str:
        """Where a confined command may write, in words."""
        return "$TMPDIR" if self.read_only else "the workspace and $TMPDIR"

    def bounds(self, workspace: Path, private: Path) -> Bounds:
        write = (private, *self.write) if self.read_only else (workspace, private, *self.write)
        read = None if self.read is None else (*self.read, workspace, *write)
        return Bounds(write=write, read=read, network=self.network)


def run_shell_tool(
    *,
    sandbox: Sandbox | None,
    network: bool = True,
    write: tuple[Path, ...] = (),
    read_only: bool = False,
    read: tuple[Path, ...] | None = None,
    timeout: float = TIMEOUT,
    longest: float = LONGEST,
    grace: float = GRACE,
    secrets: frozenset[str] = frozenset(),
) -> Tool:
    """`run_shell`, in a sandbox, or, with None, openly in none.

    `NoSandbox` if the sandbox cannot hold what it should. Without one, commands that must not reach
    the network are refused as well: nothing else could stop them.
    """
    if os.name != "posix":
        raise NoSandbox("run_shell needs a system with a POSIX shell; this one has none.")
    if sandbox is None and (not network or read_only or read is not None):
        raise NoSandbox(
            "Network, writing and reading can only be held back by a sandbox, and none is given."
        )
    shell = Shell(
        sandbox=sandbox, network=network, write=write, read_only=read_only, read=read,
        timeout=timeout, longest=longest, grace=grace, secrets=secrets,
    )  # fmt: skip
    if sandbox is not None:
        sandbox.confined(["true"], shell.bounds(Path("/"), Path("/")))
    spec = ToolSpec(
        name="run_shell",
        description=described(shell),
        parameters=dumped(schema(shell)),
        effect=SideEffect.UNSAFE,
        keep=Keep.ENDS,
        aliases=("bash", "shell", "sh", "exec", "execute", "run_command", "run_bash", "terminal"),
    )
    parse = reader(spec.parameters)

    def checked(text: str) -> Arguments:
        arguments = parse(text)
        command = str(arguments["command"])
        if not command.strip():
            raise BadArguments("The command is empty. Write what the shell should run.")
        if "\0" in command:
            raise BadArguments("The command holds a NUL character, which no shell can take.")
        return arguments

    async def perform(arguments: Arguments, context: Context) -> Output:
        return await performed(shell, arguments, context)

    return Tool(spec=spec, parse=checked, touch=touch, run=perform, timeout=longest + grace + 30.0)


def schema(shell: Shell) -> dict[str, object]:
    return {
        "type": "object",
        "properties": {
            "command": {"type": "string"},
            "timeout": {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": shell.longest,
                "description": f"seconds; default: {shell.timeout:g}",
            },
            "workdir": {"type": "string", "description": "a folder; default: the workspace"},
        },
        "required": ["command"],
        "additionalProperties": False,
    }


def described(shell: Shell) -> str:
    held = ""
    if shell.sandbox is not None:
        held = f" It can write only in {shell.places}"
        lacks = (
            "make TCP connections" if shell.sandbox.kind is Kind.LANDLOCK else "reach the network"
        )
        held += "." if shell.network else f", and cannot {lacks}."
    return (
        "Run a command with bash: its exit code and output. Each call is a new shell in the "
        "workspace: `cd` and variables do not last. There is no input: use options, not prompts. "
        "What is left in the background ends with the call." + held
    )


# Running


async def performed(shell: Shell, arguments: Arguments, context: Context) -> Output:
    workspace = context.workspace.resolve()
    workdir = placed(str(arguments.get("workdir") or "."), workspace)
    if not workdir.is_dir():
        raise ToolError(f"There is no folder {workdir} to run the command in.")
    wanted = arguments.get("timeout")
    timeout = float(wanted) if isinstance(wanted, int | float) else shell.timeout
    program = shutil.which("bash") or "/bin/sh"
    plain = ("--noprofile", "--norc") if program.endswith("bash") else ()
    command = (program, *plain, "-c", "--", str(arguments["command"]))
    guarded: Guarded | None = None
    reads = await to_thread.run_sync(lambda: touch(arguments, workspace).access is Access.READ)
    with private_folder(shell.sandbox) as private:
        environment = cleaned_environment(os.environ, shell.secrets)
        if reads:
            environment = for_reading(environment)
        line: tuple[str, ...] = ("--", *command)
        if shell.sandbox is not None and private is not None:
            environment["TMPDIR"] = str(private)
            line = shell.sandbox.confined(command, shell.bounds(workspace, private))
            if not changes_guarded(arguments, workspace):
                guarded = await to_thread.run_sync(Guarded.of, workspace)
        restored: tuple[str, ...] = ()
        try:
            ended = await run(
                line,
                cwd=workdir,
                environment=environment,
                seconds=timeout,
                grace=shell.grace,
                tell=lambda text: context.tell(Progress(text)),
            )
        finally:
            # Also when the call is cancelled, so nothing is awaited here.
            restored = guarded.restored() if guarded is not None else ()
    # In a thread: megabytes of output take their time to be cleaned.
    text = await to_thread.run_sync(told, ended, timeout, shell, restored)
    return Output(text, failed=ended.timed_out or ended.code != 0)


@contextmanager
def private_folder(sandbox: Sandbox | None) -> Iterator[Path | None]:
    """A confined command has its temporary files to itself, and they go with it."""
    if sandbox is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="holdfast-", ignore_cleanup_errors=True) as folder:
        yield Path(folder).resolve()


def told(ended: Ended, timeout: float, shell: Shell, restored: tuple[str, ...]) -> str:
    """The result: how it ended, then what it wrote, then what may help."""
    out, err = ended.out.text().strip("\n"), ended.err.text().strip("\n")
    parts = [how_it_ended(ended, timeout, shell)]
    if out and err:
        parts += [f"stdout:\n{out}", f"stderr:\n{err}"]
    elif out or err:
        parts.append(f"stderr:\n{err}" if err else out)
    else:
        parts.append("(no output)")
    parts += hints(ended, f"{out[-4_000:]}\n{err[-4_000:]}", shell)
    if restored:
        parts.append(
            f"[It changed {', '.join(restored)}, which decide what may run later. They are as "
            "they were before. If that should be changed, say so to the user.]"
        )
    return "\n\n".join(parts)


def how_it_ended(ended: Ended, timeout: float, shell: Shell) -> str:
    if ended.timed_out:
        more = f" Up to {shell.longest:g} can be asked for." if timeout < shell.longest else ""
        return f"timed out: ended after {timeout:g} seconds.{more} What it wrote until then:"
    if ended.code is None:
        return "exit code: unknown; the process that watched the command was ended."
    if ended.code < 0:
        return f"exit code: {128 - ended.code} (ended by signal {-ended.code})"
    return f"exit code: {ended.code}"


def hints(ended: Ended, wrote: str, shell: Shell) -> Iterator[str]:
    if ended.left:
        several = "process was" if ended.left == 1 else "processes were"
        yield f"[{ended.left} {several} still running in the background and had to be ended.]"
    if ended.code == 127:
        yield "[A command was not found: it is not installed here, or its name is another.]"
    if ended.code == 126:
        yield "[Something was found, but it is no program that may be run.]"
    if ended.code and shell.sandbox is not None and DENIED.search(wrote):
        if not shell.network and CONNECTING.search(wrote):
            yield "[The sandbox holds connections back; commands must do without.]"
        else:
            yield f"[The sandbox lets commands write only in {shell.places}. Write there instead.]"
