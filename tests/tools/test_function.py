"""Python functions as tools: what the model is told of them, and how they run."""

import functools
import json
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import anyio
import pydantic
import pytest

from holdfast.core.events import ToolFinished
from holdfast.core.limits import Usage
from holdfast.core.messages import ToolCall
from holdfast.core.tools import Keep, SideEffect, ToolSpec
from holdfast.tools.base import (
    Access,
    Arguments,
    BadArguments,
    Context,
    Filled,
    Form,
    Left,
    Progress,
    Tool,
    ToolError,
    Touch,
)
from holdfast.tools.function import AccessName, FunctionTool, tool
from holdfast.tools.gateway import Gateway, Permissions, Toolbox
from holdfast.tools.permissions import Mode
from holdfast.tools.threads import in_loop
from tests.tools import typed_tools
from tests.tools.door import NO, ListDoor


@dataclass
class Watched:
    """A context that remembers what it was told."""

    session: str = "s"
    call_id: str = "c"
    key: str = "k"
    workspace: Path = Path("/project")
    left: Left = Left(1, 1, 1, 1, 1.0)
    told: list[Progress] = field(default_factory=list)
    kept: list[Path] = field(default_factory=list)

    def tell(self, progress: Progress) -> None:
        self.told.append(progress)

    async def keep(self, path: Path) -> None:
        self.kept.append(path)

    async def result(self, call_id: str) -> str | None:
        return call_id

    async def found(self, names: tuple[str, ...]) -> None: ...

    async def ask(self, form: Form) -> Filled:
        return Filled(False)

    async def charge(self, usage: Usage) -> None: ...


async def ran(made: Tool, context: Context | None = None, **arguments: object) -> object:
    running = made.run(made.parse(json.dumps(arguments)), context or Watched())
    assert not isinstance(running, AsyncIterator)
    return await running


def properties(made: Tool) -> object:
    return json.loads(made.spec.parameters)["properties"]


def test_a_function_is_described_by_its_signature_and_docstring() -> None:
    @tool
    def read_receipt(path: str, lines: int = 20) -> str:
        """Read the text of one receipt.

        Args:
            path: Where it is.
        """
        return f"{path}:{lines}"

    assert read_receipt.spec == ToolSpec(
        name="read_receipt",
        description="Read the text of one receipt.",
        parameters='{"type":"object","properties":{"path":{"type":"string","description":'
        '"Where it is."},"lines":{"type":"integer","default":20}},"required":["path"]}',
        effect=SideEffect.UNSAFE,
        mutates=True,
    )
    assert read_receipt.touch({"path": "a"}, Path("/project")) == Touch(Access.EXECUTE)


def test_a_tool_can_still_be_called_as_a_function() -> None:
    @tool(effect="read")
    def double(number: int) -> int:
        return number * 2

    assert (double(4), double(number=5)) == (8, 10)
    assert isinstance(double, FunctionTool)


def test_every_option_reaches_the_tool() -> None:
    async def probe(arguments: Arguments, context: Context) -> str:
        return context.key

    @tool(
        name="look-up",
        effect=SideEffect.READ,
        mutates=True,
        polls=True,
        approve=True,
        timeout=3,
        cap=500,
        keep="tail",
        keep_last=2,
        aliases=("find",),
        access="network",
        probe=probe,
    )
    def look(word: str) -> str:
        "Look it up."
        return word

    assert look.spec == ToolSpec(
        name="look-up",
        description="Look it up.",
        parameters='{"type":"object","properties":{"word":{"type":"string"}},"required":["word"]}',
        effect=SideEffect.READ,
        mutates=True,
        polls=True,
        cap=500,
        keep=Keep.TAIL,
        keep_last=2,
        aliases=("find",),
    )
    assert (look.timeout, look.approve, look.probe) == (3, True, probe)
    assert look.touch({}, Path("/project")) == Touch(Access.NETWORK)


def test_a_tool_that_reads_neither_mutates_nor_executes() -> None:
    made = tool(len_of, effect="read")

    assert (made.spec.mutates, made.touch({}, Path("/"))) == (False, Touch(Access.READ))


def len_of(text: str) -> int:
    return len(text)


def test_paths_are_what_rules_are_held_against() -> None:
    @tool(access=Access.EDIT)
    def move(source: Path, target: Annotated[Path, "where to"], why: str = "") -> None: ...

    touched = move.touch({"source": "./a", "target": "src/../b", "why": "x"}, Path("/project/here"))

    assert touched == Touch(Access.EDIT, ("a", "b"))


@pytest.mark.parametrize(
    ("access", "path", "danger"),
    [
        ("edit", "../a", "{above}/a is outside the workspace"),
        ("edit", "link/a", "{above}/a is outside the workspace"),
        ("edit", ".git/config", ".git/config can change what is run or allowed later"),
        ("edit", "a", ""),
        ("read", "../a", "{above}/a is outside the workspace"),
        ("read", ".git/config", ""),
        ("execute", "../a", ""),
    ],
)
def test_a_path_that_leaves_the_workspace_is_a_danger(
    access: AccessName, path: str, danger: str, tmp_path: Path
) -> None:
    workspace = tmp_path / "here"
    workspace.mkdir()
    (workspace / "link").symlink_to(tmp_path)

    @tool(access=access)
    def use(path: Path) -> None: ...

    assert use.touch({"path": path}, workspace).danger == danger.format(above=tmp_path)


async def test_a_function_that_edits_outside_the_workspace_is_asked_about(tmp_path: Path) -> None:
    @tool(access="edit", approve=False)
    def write(path: Path) -> str:
        return f"wrote {path.name}"

    permissions = Permissions(Mode.ACCEPT_EDITS)
    gate = Gateway(Toolbox([write]), tmp_path, permissions=permissions)
    door = ListDoor([NO])

    await gate.perform(ToolCall("c1", "write", '{"path": "a"}'), door)
    await gate.perform(ToolCall("c2", "write", '{"path": "../a"}'), door)

    assert [question.why for question in door.questions] == [
        f"{tmp_path.parent / 'a'} is outside the workspace."
    ]
    assert [event.text for event in door.events if isinstance(event, ToolFinished)] == [
        "wrote a",
        "Not run. The user said no.",
    ]


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Shop(TypedDict):
    name: str
    stars: NotRequired[int]


@dataclass(frozen=True)
class Point:
    """A place.

    x: to the right
    """

    x: int
    y: float = 0
    colour: Colour | None = None

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("x must not be negative")


class Item(pydantic.BaseModel):
    name: str = pydantic.Field(max_length=8)
    day: date | None = None
    note: str | None = pydantic.Field(default=None, description="Anything else.")


class Node(pydantic.BaseModel):
    name: str
    children: list["Node"] = []


@pytest.mark.parametrize(
    ("hint", "schema", "given", "made"),
    [
        (str, {"type": "string"}, "a", "a"),
        (float, {"type": "number"}, 2, 2.0),
        (int | None, {"type": ["integer", "null"]}, None, None),
        (int | str, {"type": ["integer", "string"]}, "4", "4"),
        (Any, {}, {"a": 1}, {"a": 1}),
        (Path, {"type": "string"}, "a/b", Path("a/b")),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}, "A", "a"),
        (Literal[1, "b", None], {"enum": [1, "b", None]}, 1, 1),
        (Colour, {"type": "string", "enum": ["red", "blue"]}, "Blue", Colour.BLUE),
        (list[int], {"type": "array", "items": {"type": "integer"}}, ["1", 2], [1, 2]),
        (list, {"type": "array"}, [1, "a"], [1, "a"]),
        (Sequence[Colour], {"type": "array", "items": {"type": "string", "enum": ["red", "blue"]}},
         ["red"], [Colour.RED]),
        (set[str], {"type": "array", "items": {"type": "string"}}, ["a", "a"], {"a"}),
        (frozenset[int], {"type": "array", "items": {"type": "integer"}}, 5, frozenset({5})),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}, [1, 2], (1, 2)),
        (tuple[int, int],
         {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}, [1, 2], (1, 2)),
        (tuple[int, Path],
         {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}],
          "minItems": 2, "maxItems": 2}, [1, "a"], (1, Path("a"))),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}},
         {"a": "1"}, {"a": 1}),
        (Mapping[str, Any], {"type": "object"}, {"a": None}, {"a": None}),
        (Shop,
         {"type": "object", "properties": {"name": {"type": "string"}, "stars": {"type": "integer"}},
          "required": ["name"]}, {"name": "Ana", "stars": "5"}, {"name": "Ana", "stars": 5}),
        (Point,
         {"type": "object", "properties": {
             "x": {"type": "integer", "description": "to the right"},
             "y": {"type": "number", "default": 0},
             "colour": {"type": "string", "enum": ["red", "blue"]}}, "required": ["x"]},
         {"x": 1, "colour": "red"}, Point(1, 0, Colour.RED)),
        (Annotated[int, "how many"], {"type": "integer", "description": "how many"}, 1, 1),
        (Annotated[int, pydantic.Field(ge=2, description="how many")],
         {"type": "integer", "minimum": 2, "description": "how many"}, "2", 2),
        (date, {"type": "string", "format": "date"}, "2026-01-02", date(2026, 1, 2)),
        (Item,
         {"type": "object", "properties": {
             "name": {"type": "string", "maxLength": 8},
             "day": {"type": "string", "format": "date"},
             "note": {"type": "string", "description": "Anything else."}}, "required": ["name"]},
         {"name": "a", "day": None}, Item(name="a")),
        (Point | Shop,
         {"anyOf": [
             {"type": "object", "properties": {
                 "x": {"type": "integer", "description": "to the right"},
                 "y": {"type": "number", "default": 0},
                 "colour": {"type": "string", "enum": ["red", "blue"]}}, "required": ["x"]},
             {"type": "object", "properties": {"name": {"type": "string"}, "stars": {"type": "integer"}},
              "required": ["name"]}]}, {"x": 3}, Point(3)),
    ],
    ids=lambda value: str(value)[:30],
)  # fmt: skip
async def test_a_type_becomes_a_small_schema_and_its_values_are_made(
    hint: Any, schema: object, given: object, made: object
) -> None:
    def take(value):  # type: ignore[no-untyped-def]
        return value

    take.__annotations__["value"] = hint
    taking = tool(take)

    assert properties(taking) == {"value": schema}
    got = await ran(taking, value=given)
    assert (got, type(got)) == (made, type(made))


def test_what_may_be_left_out_does_not_speak_of_null() -> None:
    @tool
    def search(
        word: str | None = None,
        day: date | None = None,
        item: Item | None = None,
        limit: int | None = 5,
        long: str = "x" * 100,
        tags: tuple[str, ...] = (),
        colour: Colour = Colour.RED,
    ) -> None: ...

    assert properties(search) == {
        "word": {"type": "string"},
        "day": {"type": "string", "format": "date"},
        "item": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "maxLength": 8},
                "day": {"type": "string", "format": "date"},
                "note": {"type": "string", "description": "Anything else."},
            },
            "required": ["name"],
        },
        "limit": {"type": ["integer", "null"], "default": 5},
        "long": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
    }
    assert "required" not in json.loads(search.spec.parameters)


async def test_a_definition_that_is_used_twice_or_in_itself_is_written_once() -> None:
    @tool
    def plant(one: Node, items: list[Item], more: Item) -> str:
        return f"{one.children[0].name} {items[0].name} {more.name}"

    schema = json.loads(plant.spec.parameters)
    assert (schema["properties"], sorted(schema["$defs"])) == (
        {
            "one": {"$ref": "#/$defs/Node"},
            "items": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
            "more": {"$ref": "#/$defs/Item"},
        },
        ["Item", "Node"],
    )
    tree = {"name": "a", "children": {"name": "b"}}
    assert await ran(plant, one=tree, items={"name": "c"}, more={"name": "d"}) == "b c d"


GOOGLE = """Find things.

Everywhere at once.

Args:
    word (str): What to look for,
        in any case.
    limit: At most
        so many: at least one.

Returns:
    word: the things.
"""
NUMPY = """Find things.

Everywhere
at once.

Parameters
----------
word : str
    What to look for,
    in any case.
limit : int, optional
    At most so many: at least one.

Returns
-------
list
    limit things.
"""
REST = """Find things.

Everywhere at once.

:param str word: What to look for,
    in any case.
:param limit: At most so many: at least one.
:type limit: int
:returns: The things.
"""
PLAIN = """
    Find things.

    Everywhere at once.

    word: What to look for,
        in any case.
    limit: At most so many: at least one.
"""


@pytest.mark.parametrize(
    "text", [GOOGLE, NUMPY, REST, PLAIN], ids=["google", "numpy", "rest", "plain"]
)
def test_parameters_are_described_in_any_style_of_docstring(text: str) -> None:
    def find(word: str, limit: int) -> None: ...

    find.__doc__ = text
    made = tool(find)

    assert (made.spec.description, properties(made)) == (
        "Find things.\n\nEverywhere at once.",
        {
            "word": {"type": "string", "description": "What to look for, in any case."},
            "limit": {"type": "integer", "description": "At most so many: at least one."},
        },
    )


def test_a_description_keeps_its_lists_and_unwraps_its_lines() -> None:
    @tool
    def plan(kind: str) -> None:
        """Make a plan of
        one kind:

        - short, of
          three lines
        - long

        The kind matters: choose well.
        """

    assert plan.spec.description == (
        "Make a plan of one kind:\n\n- short, of three lines\n- long\n\nThe kind matters: choose well."
    )


class Parent(pydantic.BaseModel):
    child: "Child | None" = None


class Child(pydantic.BaseModel):
    parent: Parent | None = None


async def test_types_that_contain_each_other_can_be_taken() -> None:
    @tool
    def depth(parent: Parent) -> int:
        return 1 if parent.child is None or parent.child.parent is None else 2

    assert await ran(depth, parent={"child": {"parent": "{}"}}) == 2
    assert "$defs" in depth.spec.parameters


async def test_a_context_is_given_and_not_shown() -> None:
    @tool
    async def note(text: str, context: Context) -> str:
        await context.keep(Path(text))
        return context.call_id

    @tool
    def blocking(context: Context, text: str) -> str:
        in_loop(context.keep, Path(text))
        return context.key

    watched = Watched()
    assert list(json.loads(note.spec.parameters)["properties"]) == ["text"]
    assert list(json.loads(blocking.spec.parameters)["properties"]) == ["text"]
    assert (await ran(note, watched, text="a"), await ran(blocking, watched, text="b")) == (
        "c",
        "k",
    )
    assert watched.kept == [Path("a"), Path("b")]


async def test_a_blocking_function_leaves_the_event_loop_free() -> None:
    main = threading.current_thread()

    @tool
    def where() -> bool:
        return threading.current_thread() is main

    @tool
    async def here() -> bool:
        return threading.current_thread() is main

    assert (await ran(where), await ran(here)) == (False, True)


class Greeter:
    def __init__(self, greeting: str) -> None:
        self.greeting = greeting

    def greet(self, name: str) -> str:
        return f"{self.greeting} {name}"

    async def __call__(self, name: str) -> str:
        return f"{self.greeting}! {name}"


async def test_methods_partials_and_callable_objects_are_functions_too() -> None:
    async def add(one: int, two: int) -> int:
        return one + two

    bound = tool(Greeter("Hello").greet)
    called = tool(Greeter("Hi"), name="hi")
    partial = tool(functools.partial(add, two=2), name="plus_two")

    assert await ran(bound, name="Ana") == "Hello Ana"
    assert await ran(called, name="Ana") == "Hi! Ana"
    assert await ran(partial, one="1") == 3


async def test_a_generator_tells_of_its_progress_and_ends_with_its_result() -> None:
    threads: set[threading.Thread] = set()

    @tool
    def copy(count: int) -> Iterator[Progress | str]:
        for number in range(count):
            threads.add(threading.current_thread())
            yield Progress("copying", number, count)
        yield "copied"

    @tool
    def returning() -> Any:
        yield Progress("half")
        return "whole"

    @tool
    async def native() -> AsyncIterator[Progress | str]:
        yield Progress("half")
        yield "native"

    watched = Watched()
    assert [
        await ran(copy, watched, count=2),
        await ran(returning, watched),
        await ran(native, watched),
    ] == [
        "copied",
        "whole",
        "native",
    ]
    assert watched.told == [
        Progress("copying", 0, 2), Progress("copying", 1, 2), Progress("half"), Progress("half"),
    ]  # fmt: skip
    assert len(threads) == 1


async def test_two_results_of_one_call_are_a_mistake_that_is_said_at_once() -> None:
    went_on = []

    @tool
    def lines() -> Iterator[str]:
        yield "one"
        yield "two"
        went_on.append("lines")

    @tool
    async def others() -> AsyncIterator[str]:
        yield "one"
        yield "two"
        went_on.append("others")

    for each in (lines, others):
        with pytest.raises(TypeError, match="yielded two results"):
            await ran(each)
    assert went_on == []


async def test_a_generator_that_is_given_up_is_closed_at_its_next_step() -> None:
    started, go, closed = anyio.Event(), threading.Event(), threading.Event()

    async def begin() -> None:
        started.set()

    @tool
    def endless() -> Iterator[Progress]:
        try:
            in_loop(begin)
            while True:
                go.wait(20)
                yield Progress("more")
        finally:
            closed.set()

    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(ran, endless)
            await started.wait()
            group.cancel_scope.cancel()
        go.set()
        assert await anyio.to_thread.run_sync(closed.wait, 20)


async def test_what_a_tool_raises_comes_through() -> None:
    @tool
    def fail() -> None:
        raise ToolError("the shop is closed")

    with pytest.raises(ToolError, match="the shop is closed"):
        await ran(fail)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"point": {"x": -1}}, "These arguments are refused: x must not be negative"),
        ({"point": {"x": 1}, "day": "soon"},
         "day: Input should be a valid date or datetime, input is too short."),
        ({"point": {"x": 1, "z": 3}}, "point.z: is unknown. Expected: "
         '{point: {x: integer, y?: number, colour?: "red" | "blue"}, day?: string}'),
    ],
)  # fmt: skip
def test_what_the_types_themselves_refuse_is_refused(arguments: Arguments, said: str) -> None:
    @tool
    def mark(point: Point, day: date | None = None) -> None: ...

    with pytest.raises(BadArguments) as wrong:
        mark.parse(json.dumps(arguments))
    assert str(wrong.value) == said


async def test_arguments_stay_json_and_each_run_gets_values_of_its_own() -> None:
    @tool
    def grow(words: list[str], point: Point) -> list[str]:
        words.append(str(point.x))
        return words

    arguments = grow.parse('{"words": ["a"], "point": {"x": "1"}}')

    for _ in range(2):
        running = grow.run(arguments, Watched())
        assert not isinstance(running, AsyncIterator)
        assert await running == ["a", "1"]
    assert arguments == {"words": ["a"], "point": {"x": 1}}


def spread(*words: str) -> None: ...
def positional(word: str, /) -> None: ...
def fine(word: str) -> None: ...
def unknown(word: "Nowhere") -> None: ...  # type: ignore[name-defined] # noqa: F821
def impossible(call: threading.Thread) -> None: ...
def méthode(word: str) -> None: ...


any_tool: Any = tool


class Thing:
    def method(self, word: str) -> None: ...


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: tool(spread), r"takes \*words: str; a model must be told"),
        (lambda: tool(positional), "parameter word of the tool positional cannot be given by name"),
        (lambda: tool(unknown), "an annotation of the tool unknown cannot be read.*Nowhere"),
        (lambda: tool(impossible), "the tool impossible takes something no model could give"),
        (lambda: tool(Thing.method), r"decorate the bound one: tool\(thing.method\)"),
        (lambda: tool(lambda word: word), "'<lambda>' cannot be the name of a tool"),
        (lambda: tool(méthode), "cannot be the name of a tool"),
        (lambda: tool(fine, timeout=0), "the timeout of the tool fine is 0"),
        (lambda: any_tool(fine, efect="read"), "tool\\(\\) has no option 'efect'; it has: name, effect"),
        (lambda: any_tool(fine, effect="harmless"), "effect of the tool fine is 'harmless'; it can be read, "),
    ],
)  # fmt: skip
def test_what_cannot_be_a_tool_is_refused_when_it_is_made(make: Any, said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        make()


PLAIN_TOOLS = """
import sys
from dataclasses import dataclass
from holdfast.tools.function import tool
@dataclass
class Point:
    x: int
@tool
def mark(point: Point, words: list[str], often: int | None = None) -> str:
    "Mark a point."
    return "done"
mark.parse('{"point": {"x": 1}, "words": "a"}')
print([name for name in ("pydantic", "jsonschema", "mcp") if name in sys.modules])
"""


def test_plain_types_load_nothing_heavy() -> None:
    done = subprocess.run(
        (sys.executable, "-c", PLAIN_TOOLS), capture_output=True, text=True, check=True, timeout=50
    )

    assert done.stdout == "[]\n"


async def test_what_the_type_checker_was_told_is_true() -> None:
    typed_tools.check()
    await typed_tools.check_waiting()
