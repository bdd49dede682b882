"""Calls of tools that real servers offer."""

from pathlib import Path

import anyio
import pytest

from holdfast.tools.base import Binary, Filled, Form, Output, Progress, ToolError
from holdfast.tools.mcp.asking import Sampling
from holdfast.tools.mcp.listing import Wanted
from tests.tools.mcp.watching import Caller, new, old, watching


async def test_a_tool_of_a_server_answers() -> None:
    async with watching(old(), new()) as watch:
        assert await watch.call("old__echo", {"text": "hello"}) == Output("hello")
        assert await watch.call("new__add", {"a": 2, "b": 3}) == Output("5")


async def test_what_a_tool_says_of_its_failure_is_a_failure() -> None:
    async with watching(old()) as watch:
        assert await watch.call("old__fail") == Output("no such city", failed=True)


async def test_pictures_links_and_resources_come_through() -> None:
    async with watching(old()) as watch:
        assert await watch.call("old__picture") == Output(
            "A pixel:\n[a.txt](file:///a.txt)\nfile:///b.txt:\ninside",
            (Binary(b"\x89PNG\r\n\x1a\n", "image/png"),),
        )


async def test_structured_content_is_said_once() -> None:
    async with watching(old(), new()) as watch:
        assert await watch.call("old__weather", {"text": "21"}) == Output('{"degrees": 21.0}')
        found = await watch.call("new__weather", {"city": "Bern"})
        assert found.text.count("Bern") == 1


async def test_a_result_that_breaks_its_promise_is_passed_on_and_reported() -> None:
    async with watching(old()) as watch:
        found = await watch.call("old__weather", {"text": "warm"})

    first, second = found.text.splitlines()
    assert first == '{"degrees": "warm"}'
    assert second.startswith("[The result is not what the server promised: degrees")
    assert not found.failed


async def test_progress_reaches_the_caller() -> None:
    caller = Caller()
    async with watching(old(), new()) as watch:
        await watch.call("old__walk", caller=caller)
        await watch.call("new__walk", caller=caller)

    assert caller.told == [
        Progress("step 1", 1, 2),
        Progress("step 2", 2, 2),
        Progress("half way", 1, 2),
    ]


async def test_a_server_may_ask_the_person_who_keeps_a_default() -> None:
    caller = Caller(answer=Filled(accepted=True, values={"name": "Ada"}))
    async with watching(old()) as watch:
        found = await watch.call("old__ask", caller=caller)

    assert found == Output('{"action": "accept", "content": {"size": 7, "name": "Ada"}}')
    assert [form.message for form in caller.asked] == ["Who are you?"]
    assert watch.asked == []


async def test_nobody_there_to_ask_is_neither_yes_nor_no() -> None:
    async with watching(old()) as watch:
        assert await watch.call("old__ask") == Output('{"action": "cancel"}')


async def test_a_person_can_be_sent_to_a_page() -> None:
    caller = Caller(answer=Filled(accepted=True))
    async with watching(old()) as watch:
        assert await watch.call("old__visit", caller=caller) == Output('{"action": "accept"}')
        assert await watch.call("old__must_visit", caller=caller) == Output("welcome")

    page = Form("Sign in", url="http://127.0.0.1:1/sign-in")
    assert caller.asked == [page, page]


async def test_a_call_ends_if_the_person_will_not_go_where_they_must() -> None:
    async with watching(old()) as watch:
        with pytest.raises(ToolError, match="^The server old refused must visit: go$"):
            await watch.call("old__must_visit")


async def test_the_folder_of_the_run_is_the_root(tmp_path: Path) -> None:
    async with watching(old(), workspace=tmp_path) as watch:
        found = await watch.call("old__where")

    assert tmp_path.as_uri() in found.text


async def test_a_model_is_asked_for_a_server_only_if_one_was_given() -> None:
    async def sample(server: str, wanted: Sampling) -> str:
        assert (server, wanted) == ("old", Sampling((("user", "2 + 2?"),), output=9))
        return "4"

    async with watching(old()) as watch:
        refused = await watch.call("old__think")
    async with watching(old(), sample=sample) as watch:
        answered = await watch.call("old__think")

    assert "Sampling not supported" in refused.text
    assert '"text": "4"' in answered.text


async def test_a_cancelled_call_is_cancelled_at_the_server_too() -> None:
    async with watching(old()) as watch:
        async with anyio.create_task_group() as group:
            group.start_soon(watch.call, "old__hang")
            await watch.until_told(lambda status: status.log == "info: hanging")
            group.cancel_scope.cancel()
        await watch.until_told(lambda status: status.log == "info: let go")

        assert await watch.call("old__echo", {"text": "still here"}) == Output("still here")


async def test_an_unknown_tool_is_refused_in_the_words_of_the_server() -> None:
    async with watching(old()) as watch:
        with pytest.raises(ToolError, match="^The server old refused lost: Unknown tool: lost$"):
            await watch.servers.links["old"].call(Wanted("lost", {}, None), Caller())


async def test_only_what_every_program_needs_is_inherited() -> None:
    async with watching(old(env={"MINE": "1"})) as watch:
        found = await watch.call("old__environment")

    assert "SECRET" not in found.text
    assert '"MINE"' in found.text
    assert '"PATH"' in found.text
