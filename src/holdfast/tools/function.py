"""Tools made of Python functions.

A function becomes a tool by its signature and its docstring; it stays a function, so that tests can
call it. What a parameter's type means is `signature`, reading arguments is `arguments`, threads are
`threads`. When a tool may run, and what becomes of its result, is decided by the gateway.
"""

import inspect
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable
from contextlib import aclosing, closing
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Generic, Literal, ParamSpec, TypeAlias, TypedDict, TypeVar, Unpack, overload

from holdfast.core.tools import Keep, SideEffect, ToolSpec
from holdfast.tools.arguments import reader
from holdfast.tools.base import (
    Access,
    Arguments,
    BadArguments,
    Context,
    Probe,
    Progress,
    Tool,
    Touch,
)
from holdfast.tools.signature import Signature, signature_of
from holdfast.tools.threads import GIVEN_UP, Abandoned, in_thread, is_abandoned
from holdfast.tools.workspace import Place, Workspace

P = ParamSpec("P")
R = TypeVar("R")
E = TypeVar("E", bound=Enum)

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What every server takes as the name of a tool."""
EffectName: TypeAlias = Literal["read", "idempotent", "unsafe"]
KeepName: TypeAlias = Literal["head", "tail", "ends"]
AccessName: TypeAlias = Literal["none", "read", "edit", "network", "execute"]


class Options(TypedDict, total=False):
    """What a signature cannot say of a tool."""

    name: str
    """For the model; else the name of the function."""
    effect: EffectName | SideEffect
    """What may happen again after a crash; unsafe unless told."""
    mutates: bool
    """It may change what other tools return; else: unless its effect is to read."""
    polls: bool
    approve: bool | None
    timeout: float | None
    """Seconds."""
    cap: int | None
    keep: KeepName | Keep
    keep_last: int | None
    aliases: tuple[str, ...]
    access: AccessName | Access
    """Else: to read if that is its effect, to execute if not."""
    probe: Probe | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionTool(Tool, Generic[P, R]):
    """A tool that can still be called as the function it was made of."""

    function: Callable[P, R]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)


@dataclass(frozen=True, slots=True)
class Decorator:
    """What `@tool(...)` returns: makes tools with these options."""

    options: Options

    def __call__(self, function: Callable[P, R], /) -> FunctionTool[P, R]:
        return tool_of(function, self.options)


@overload
def tool(function: Callable[P, R], /, **options: Unpack[Options]) -> FunctionTool[P, R]: ...
@overload
def tool(**options: Unpack[Options]) -> Decorator: ...
def tool(
    function: Callable[P, R] | None = None, /, **options: Unpack[Options]
) -> FunctionTool[P, R] | Decorator:
    """Make a tool of a function: `@tool`, `@tool(effect="read")` or `tool(function)`.

    A parameter annotated with `Context` gets the context and is not shown to the model. A blocking
    function runs in a thread. A generator yields `Progress` on the way and, last, the result.
    """
    return Decorator(options) if function is None else tool_of(function, options)


def tool_of(function: Callable[P, R], options: Options) -> FunctionTool[P, R]:
    refuse_unknown(options)
    name = options.get("name") or name_of(function)
    if not NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} cannot be the name of a tool: at most 64 letters, digits, _ and - of ASCII. "
            'Give it one: @tool(name="...").'
        )
    timeout = options.get("timeout")
    if timeout is not None and not timeout > 0:
        raise ValueError(f"the timeout of the tool {name} is {timeout}; it must be above zero.")
    effect = one_of(
        SideEffect, options.get("effect", SideEffect.UNSAFE), f"the effect of the tool {name}"
    )
    reads = effect is SideEffect.READ
    usual = Access.READ if reads else Access.EXECUTE
    access = one_of(Access, options.get("access", usual), f"the access of the tool {name}")
    signature = signature_of(function, name)
    spec = ToolSpec(
        name=name,
        description=signature.description,
        parameters=signature.schema,
        effect=effect,
        mutates=options.get("mutates", not reads),
        polls=options.get("polls", False),
        cap=options.get("cap"),
        keep=one_of(Keep, options.get("keep", Keep.HEAD), f"what the tool {name} keeps"),
        keep_last=options.get("keep_last"),
        aliases=tuple(options.get("aliases", ())),
    )
    return FunctionTool(
        spec=spec,
        parse=parser(signature),
        touch=toucher(signature, access),
        run=runner(function, signature),
        timeout=timeout,
        approve=options.get("approve"),
        probe=options.get("probe"),
        function=function,
    )


def refuse_unknown(options: Options) -> None:
    unknown = sorted(options.keys() - Options.__annotations__.keys())
    if unknown:
        known = ", ".join(Options.__annotations__)
        raise TypeError(f"tool() has no option {unknown[0]!r}; it has: {known}.")


def one_of(words: type[E], value: object, what: str) -> E:
    try:
        return words(value)
    except ValueError:
        known = ", ".join(str(word.value) for word in words)
        raise ValueError(f"{what} is {value!r}; it can be {known}.") from None


def name_of(function: Callable[..., object]) -> str:
    return str(getattr(function, "__name__", ""))


def parser(signature: Signature) -> Callable[[str], Arguments]:
    read = reader(signature.schema, closed=True)
    if not signature.makers:
        return read

    def parse(text: str) -> Arguments:
        """The arguments as JSON values. That Python values can be made of them is checked here,
        and done again for each run, so that no run gets values that another one has changed."""
        arguments = read(text)
        made(signature, arguments)
        return arguments

    return parse


def made(signature: Signature, arguments: Arguments) -> dict[str, object]:
    try:
        return signature.made(arguments)
    except BadArguments:
        raise
    except (ValueError, TypeError, OverflowError) as wrong:  # the type's own checks
        raise BadArguments(f"These arguments are refused: {wrong}") from wrong


def toucher(signature: Signature, access: Access) -> Callable[[Arguments, Path], Touch]:
    def touch(arguments: Arguments, workspace: Path) -> Touch:
        given = (arguments.get(name) for name in signature.paths)
        whole = Workspace(workspace)
        places = [whole.place(path) for path in given if isinstance(path, str)]
        # What each is, and what was written: a rule is not got round with a symlink.
        names = [(place.name, whole.below(place.written).as_posix()) for place in places]
        subjects = tuple(dict.fromkeys(name for both in names for name in both))
        return Touch(access, subjects, danger(whole, places, access))

    return touch


def danger(workspace: Workspace, places: Iterable[Place], access: Access) -> str:
    """Who may look at files, or change them, may do so in the workspace."""
    if access not in (Access.READ, Access.EDIT):
        return ""  # it says nothing of files, and is judged as what it is
    edits = access is Access.EDIT
    return next(filter(None, (workspace.danger(one, changes=edits) for one in places)), "")


def runner(
    function: Callable[..., object], signature: Signature
) -> Callable[[Arguments, Context], Awaitable[object]]:
    is_native = is_async(function)

    async def run(arguments: Arguments, context: Context) -> object:
        given = made(signature, arguments)
        if signature.context:
            given[signature.context] = context
        if is_native:
            result = function(**given)
        else:
            result = await in_thread(call, function, given, context.tell)
        if inspect.isasyncgen(result):
            return await last_of_async(result, context.tell)
        return await result if inspect.isawaitable(result) else result

    return run


def is_async(function: Callable[..., object]) -> bool:
    """Also of a partial function, and of an object that can be called."""
    forms: tuple[Any, ...] = (function, getattr(function, "func", None), type(function).__call__)
    return any(map(inspect.iscoroutinefunction, forms)) or any(
        map(inspect.isasyncgenfunction, forms)
    )


def call(
    function: Callable[..., object], given: dict[str, object], tell: Callable[[Progress], None]
) -> object:
    """Runs in the thread, from its beginning to its end: a generator may hold a connection that
    only one thread may use."""
    result = function(**given)
    return last_of(result, tell) if inspect.isgenerator(result) else result


def last_of(yielded: Generator[object, Any, object], tell: Callable[[Progress], None]) -> object:
    results: list[object] = []
    with closing(yielded):
        while not is_abandoned():
            try:
                item = next(yielded)
            except StopIteration as end:
                return the_one([*results, *([] if end.value is None else [end.value])])
            take(item, results, tell)
    raise Abandoned(GIVEN_UP)  # it was stopped between two steps: what there is is no result


async def last_of_async(
    yielded: AsyncGenerator[object, Any], tell: Callable[[Progress], None]
) -> object:
    results: list[object] = []
    async with aclosing(yielded):
        async for item in yielded:
            take(item, results, tell)
    return the_one(results)


def take(item: object, results: list[object], tell: Callable[[Progress], None]) -> None:
    if isinstance(item, Progress):
        tell(item)
        return
    the_one([*results, item])
    results.append(item)


def the_one(results: list[object]) -> object:
    if len(results) > 1:
        raise TypeError(
            "the tool yielded two results; it may yield Progress as often as it likes, "
            "and one result, last."
        )
    return results[0] if results else None
