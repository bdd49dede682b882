"""What a reply meant, once it is whole: every style of call, mended arguments, nothing completed."""

import pytest

from holdfast.core.events import Finish, Reply, WantedCall
from holdfast.core.tools import ToolSpec
from holdfast.models.base import Replied
from holdfast.models.dialects import CUT
from holdfast.models.reading import understood
from tests.models.styles import EXAMPLES, TOOLS

OFFERED = tuple(ToolSpec(name=name, parameters=schema) for name, schema in TOOLS.items())


@pytest.mark.parametrize(("text", "calls"), [(text, calls) for _, text, calls in EXAMPLES])
def test_a_call_in_any_style_is_a_call_of_the_reply(text: str, calls: list[WantedCall]) -> None:
    read = understood(Replied(Reply(text=text)), OFFERED, spoken=False)

    assert [(each.name, each.arguments) for each in read.reply.calls] == [
        (each.name, each.arguments) for each in calls
    ]
    assert "a call written as text" in read.notes


@pytest.mark.parametrize("text", [text for _, text, _ in EXAMPLES])
def test_no_call_is_taken_from_a_text_that_the_length_limit_cut(text: str) -> None:
    cut = Reply(text=text, finish=Finish.LENGTH)

    read = understood(Replied(cut), OFFERED, spoken=False)

    assert (read.reply.calls, read.reply.problem) == ((), CUT)


def test_arguments_that_the_length_limit_cut_are_left_as_they_are() -> None:
    cut = Reply(calls=(WantedCall("read", '{"index": 7'),), finish=Finish.LENGTH)

    assert understood(Replied(cut), OFFERED, spoken=False).reply == cut


def test_without_tools_to_call_a_text_is_a_text() -> None:
    reply = Reply(text='TOOL_CALL {"tool": "read", "input": {"path": "a.md"}}')

    assert understood(Replied(reply), (), spoken=False).reply == reply
