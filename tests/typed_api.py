"""What the type checker sees of the public names. It is checked, and not run."""

from dataclasses import dataclass
from typing import assert_type

from holdfast import Agent, Happening, Result, Status, Stream, Task, load_settings, tool
from holdfast.settings import Loaded


@dataclass
class Total:
    amount: float


@tool(effect="read")
def price(item: str, *, pieces: int = 1) -> float:
    "The price of one item."
    return 2.5 * pieces


plain = Agent("ollama/qwen3:8b", tools=[price])
shaped = Agent("ollama/qwen3:8b", output=Total)


def runs() -> None:
    assert_type(plain, Agent[None])
    assert_type(plain.run_sync("?"), Result[None])
    assert_type(plain.run_sync("?").output, None)
    assert_type(shaped, Agent[Total])
    assert_type(shaped.run_sync("?"), Result[Total])
    assert_type(shaped.run_sync("?").output, Total | None)


async def waits() -> None:
    assert_type(await shaped.run("?", session="a"), Result[Total])
    assert_type(await shaped.resume("a"), Result[Total] | None)
    async with shaped as agent:
        assert_type(agent, Agent[Total])
        task = await agent.start("?")
        assert_type(task, Task[Result[Total]])
        assert_type(await task.wait(), Result[Total])
        assert_type(task.status, Status)


async def watches() -> None:
    async with shaped.stream("?") as events:
        assert_type(events, Stream[Total])
        async for event in events:
            assert_type(event, Happening)
        assert_type(await events.result(), Result[Total])


def tools_stay_functions() -> None:
    assert_type(price("tea", pieces=2), float)
    price(3)  # type: ignore[arg-type]
    price("tea", piece=2)  # type: ignore[call-arg]


def settings_are_typed() -> None:
    from pathlib import Path

    assert_type(load_settings(env={}, folder=Path(), home=Path()), Loaded)


def refused() -> None:
    import holdfast

    Agent("ollama/qwen3:8b", outputs=Total)  # type: ignore[call-arg]
    holdfast.Agnt  # type: ignore[attr-defined] # noqa: B018
