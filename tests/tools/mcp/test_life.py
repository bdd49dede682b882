"""Servers that start late, die, babble, change and come back."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.tools.base import Output, ToolError
from holdfast.tools.mcp import Patience, Server, ServerStatus, State, read
from holdfast.tools.mcp.listing import Wanted
from tests.tools.mcp.watching import Caller, new, old, watching


async def test_a_slow_server_keeps_no_other_waiting(tmp_path: Path) -> None:
    slow = old("slow", "late", str(tmp_path / "go"))
    async with watching(slow, old("quick"), ready=False) as watch:
        await watch.until(lambda watch: bool(watch.servers.tools))
        assert await watch.call("quick__echo", {"text": "here"}) == Output("here")
        assert not await watch.servers.ready(0.01)

        (tmp_path / "go").touch()
        assert await watch.servers.ready(20)
        assert await watch.call("slow__echo", {"text": "here too"}) == Output("here too")


async def test_a_server_that_dies_at_its_start_says_why_and_is_given_up() -> None:
    async with watching(old("old", "die")) as watch:
        status = await watch.until_told(lambda status: status.state is State.GIVEN_UP)

    assert status == ServerStatus(
        server="old",
        state=State.GIVEN_UP,
        text="It ended before it was ready. Its last words: no license found for anyone "
        "It is given up.",
        stderr="no license found for anyone\n",
        failures=3,
    )
    waiting = [status for status in watch.told if status.state is State.WAITING]
    assert [status.pause for status in waiting] == [0.02, 0.04]
    assert watch.offered == []


async def test_a_server_that_falls_over_the_newer_handshake_gets_the_older_one() -> None:
    async with watching(old("old", "strict")) as watch:
        await watch.until(lambda watch: bool(watch.offered))
        assert await watch.call("old__echo", {"text": "at last"}) == Output("at last")

    failed = [status.text for status in watch.told if status.state is State.WAITING]
    assert failed == ["It ended before it was ready. Its last words: expected initialize"]


async def test_a_command_that_does_not_exist_is_given_up_at_once() -> None:
    async with watching(Server(name="git", command="npx-of-nobody")) as watch:
        assert watch.told[-1].text == "npx-of-nobody not found: install it, or remove the server."
        assert watch.states("git") == [State.STARTING, State.GIVEN_UP]


async def test_for_npx_the_way_out_is_node(tmp_path: Path) -> None:
    async with watching(Server(name="git", command="npx", env={"PATH": str(tmp_path)})) as watch:
        assert watch.told[-1].text == "npx not found: install node, or remove the server."


async def test_a_server_that_is_never_ready_is_not_waited_for_for_ever() -> None:
    server = old("old", "never", start_timeout=0.2)
    async with watching(server, patience=Patience(failures=1)) as watch:
        status = watch.told[-1]

    assert status.text.startswith("It did not get ready within 0.2 seconds:")


async def test_a_call_whose_server_dies_fails_at_once_and_claims_nothing() -> None:
    async with watching(old()) as watch:
        with pytest.raises(ToolError) as raised:
            await watch.call("old__crash")

        assert str(raised.value) == (
            "The server old stopped while crash was running. It may or may not have taken effect: "
            "check before you try again."
        )
        await watch.until(lambda watch: len(watch.offered) == 3)
        names = watch.offered[0][1]
        assert watch.offered == [("old", names), ("old", ()), ("old", names)]
        failed = next(status for status in watch.told if status.failures)
        assert failed.text == "It ended. Its last words: the disk is on fire"
        assert await watch.call("old__echo", {"text": "back"}) == Output("back")


async def test_a_server_of_the_sdk_comes_back_too() -> None:
    async with watching(new()) as watch:
        crash = watch.tool("new__crash")
        with pytest.raises(ToolError, match="may or may not have taken effect"):
            await crash.run({}, Caller())  # type: ignore[misc]
        await watch.until(lambda watch: len(watch.offered) == 3)
        assert await watch.call("new__add", {"a": 1, "b": 1}) == Output("2")


async def test_a_call_starts_a_server_that_was_given_up() -> None:
    patience = Patience(first_pause=0.01, failures=1, call=20.0)
    async with watching(old(), patience=patience) as watch:
        echo = watch.tool("old__echo")
        with pytest.raises(ToolError):
            await watch.call("old__crash")
        await watch.until_told(lambda status: status.state is State.GIVEN_UP)

        assert await echo.run({"text": "again"}, Caller()) == Output("again")  # type: ignore[misc]


async def test_a_call_of_a_server_that_stays_down_says_that_nothing_ran() -> None:
    async with watching(old("old", "die"), patience=Patience(failures=1)) as watch:
        link = watch.servers.links["old"]
        with pytest.raises(ToolError) as raised:
            await link.call(Wanted("echo", {}, None), Caller())

    assert str(raised.value) == (
        "The server old is not connected, so echo did not run. It ended before it was ready. Its "
        "last words: no license found for anyone"
    )


async def test_a_restart_is_no_failure() -> None:
    async with watching(old()) as watch:
        watch.servers.restart("old")
        assert watch.servers.tools == ()
        await watch.until(lambda watch: len(watch.offered) == 3)

        assert all(status.failures == 0 for status in watch.told)
        with pytest.raises(ValueError, match="no MCP server 'odl'; configured are: old"):
            watch.servers.restart("odl")


async def test_new_tools_are_offered_when_the_server_says_so() -> None:
    async with watching(old(), new()) as watch:
        await watch.call("old__grow")
        await watch.until(lambda watch: "old__grown" in watch.offered[-1][1])
        await watch.call("new__grow")
        await watch.until(lambda watch: "new__grown" in watch.offered[-1][1])
        assert await watch.call("new__grown") == Output("here")


async def test_babble_on_stdout_does_no_harm_and_is_told_once() -> None:
    async with watching(old("old", "babble")) as watch:
        for text in ("a", "b"):
            assert await watch.call("old__echo", {"text": text}) == Output(text)

    babble = "It sends what is no message of MCP; that is passed over."
    assert [status.text for status in watch.told].count(babble) == 1


async def test_a_flood_on_stderr_does_not_stop_a_server_and_its_end_is_kept() -> None:
    async with watching(old("old", "flood")) as watch:
        assert await watch.call("old__echo", {"text": "dry"}) == Output("dry")
        with pytest.raises(ToolError):
            await watch.call("old__crash")
        status = await watch.until_told(lambda status: bool(status.stderr))

    assert status.stderr.endswith("xx\nflooded\nthe disk is on fire\n")
    assert len(status.stderr) == 2_000


async def test_a_disabled_server_is_left_alone() -> None:
    async with watching(old(disabled=True)) as watch:
        assert watch.told == []
        assert watch.servers.links["old"].state is State.OFF


async def test_no_secret_is_told() -> None:
    table = {"command": "python3", "args": ["x"], "env": {"LICENSE": "${KEY}"}}
    server = read({"old": table}, {"KEY": "sesame-open"}).servers[0]
    dying = replace(old("old", "die"), env=server.env, secrets=server.secrets)
    async with watching(dying) as watch:
        await watch.until_told(lambda status: status.state is State.GIVEN_UP)

    assert "sesame" not in repr(watch.told) + repr(server)
    assert watch.told[1].stderr == "no license found for ***\n"


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
async def test_no_process_is_left_when_the_servers_are_stopped() -> None:
    async with watching(old()) as watch:
        pids = children()
        assert pids
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    # Nobody needs to be told that the tools are gone: so are those who used them.
    assert len(watch.offered) == 1
    assert watch.states("old")[-1] is State.OFF


def children() -> list[int]:
    """The processes that this one started."""
    path = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    return [int(pid) for pid in path.read_text().split()]
