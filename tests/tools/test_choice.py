"""Which tools a model is told of, where there are many."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.tokens import Gauge, size_of_tools
from holdfast.core.tools import ToolSpec
from holdfast.tools.choice import (
    LARGE,
    SMALL,
    Choice,
    Chosen,
    Way,
    chosen,
    search_tools,
)


def spec(name: str, description: str = "", *parameters: str) -> ToolSpec:
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in parameters}}
    return ToolSpec(name=name, description=description, parameters=json.dumps(schema))


FIND = spec("find_tools", "Find tools that are not listed", "query")
FILES = (
    spec("files__list_dir", "List contents of a directory", "path"),
    spec("files__delete_file", "Delete a file", "path"),
    spec("mail__send_email", "Send a message to somebody", "recipient", "body"),
    spec("calendar__create_event", "Put an appointment into the calendar", "title", "start"),
    spec("ocr__extractText", "Extract the text of an image", "image_path"),
)
MANY = (*FILES, *(spec(f"other__tool_{number}", "Does other things") for number in range(40)))


def names(tools: object) -> list[str]:
    assert isinstance(tools, tuple | list)
    return [tool.name for tool in tools]


def test_a_large_model_is_told_of_every_tool() -> None:
    everything = (*MANY, FIND)

    assert chosen(everything, plan=LARGE, task="send a mail") == Chosen(
        everything, (), Gauge().weigh(size_of_tools(everything))
    )


def test_a_small_model_is_told_of_those_that_fit_the_task_in_their_old_order() -> None:
    plan = Choice(way=Way.FITTING, most=2)

    found = chosen((*MANY, FIND), plan=plan, task="Mail Ana the pictures in my folder")

    assert names(found.offered) == ["files__list_dir", "mail__send_email", "find_tools"]
    assert set(found.shelved_names) == set(names(MANY)) - set(names(found.offered))


def test_a_few_tools_are_not_worth_choosing_from() -> None:
    assert chosen((*FILES, FIND), plan=SMALL, task="mail").shelved == ()


def test_nothing_is_shelved_that_could_not_be_found_again() -> None:
    assert chosen(MANY, plan=SMALL, task="mail").shelved == ()


def test_tools_on_the_list_are_offered_and_no_others() -> None:
    plan = Choice(way=Way.LISTED, names=("files.*", "mail__send_email"))

    found = chosen((*MANY, FIND), plan=plan, task="anything")

    assert names(found.offered) == [
        "files__list_dir",
        "files__delete_file",
        "mail__send_email",
        "find_tools",
    ]


def test_tools_on_the_list_come_on_top_of_those_that_fit() -> None:
    plan = Choice(way=Way.FITTING, most=1, names=("ocr.*",))

    found = chosen((*MANY, FIND), plan=plan, task="delete the file")

    assert names(found.offered) == ["files__delete_file", "ocr__extractText", "find_tools"]


def test_definitions_never_take_more_than_their_room_and_the_best_stay() -> None:
    room = Gauge().weigh(size_of_tools((FILES[2], FIND))) + 3

    found = chosen((*MANY, FIND), plan=LARGE, task="send an email", most_tokens=room)

    assert names(found.offered) == ["mail__send_email", "find_tools"]
    assert found.tokens <= room


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("remove files", "files__delete_file"),
        ("show folders", "files__list_dir"),
        ("appointments", "calendar__create_event"),
        ("extracting texts from photos", "ocr__extractText"),
        ("recipient", "mail__send_email"),
    ],
)
def test_a_tool_is_found_by_other_words_for_it(query: str, first: str) -> None:
    assert search_tools(query, MANY, 3)[0].name == first


def test_words_that_nobody_has_find_nothing() -> None:
    assert search_tools("the zebra of it", MANY) == []
    assert search_tools("file", ()) == []


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        ({"most": 0}, "at least one tool must be offered"),
        ({"way": Way.LISTED}, "would offer none"),
    ],
)
def test_a_choice_that_would_offer_nothing_gets_a_sentence(
    plan: dict[str, object], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        Choice(**plan)  # type: ignore[arg-type]


some_specs = st.lists(
    st.builds(
        spec, st.text(st.characters(codec="utf-8"), min_size=1, max_size=8), st.text(max_size=30)
    ),
    unique_by=lambda tool: tool.name,
    max_size=40,
).map(lambda tools: (*(tool for tool in tools if tool.name != "find_tools"), FIND))
plans = st.sampled_from(
    [LARGE, SMALL, Choice(way=Way.LISTED, names=("a*",)), Choice(way=Way.FITTING, most=1, above=0)]
)


@given(some_specs, plans, st.text(max_size=40), st.none() | st.integers(0, 4_000))
def test_law_every_tool_is_offered_or_shelved_and_the_way_back_is_always_there(
    tools: tuple[ToolSpec, ...], plan: Choice, task: str, most_tokens: int | None
) -> None:
    found = chosen(tools, plan=plan, task=task, most_tokens=most_tokens)

    assert sorted(names(found.offered) + names(found.shelved)) == sorted(names(tools))
    assert FIND in found.offered
    assert list(found.offered) == [tool for tool in tools if tool in found.offered]
    least = Gauge().weigh(size_of_tools((FIND,)))
    assert most_tokens is None or found.tokens <= max(most_tokens, least)
