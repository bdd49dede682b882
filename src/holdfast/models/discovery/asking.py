"""Asking all places at once, and going home in time with what was learned."""

from collections.abc import Mapping
from contextlib import suppress

import anyio

from holdfast.models.discovery.http import NOT_YET, NoAnswer
from holdfast.models.discovery.kinds import Sighting, models, ways
from holdfast.models.discovery.offers import Found, Kind, Look, Offered, Server, Silent
from holdfast.models.discovery.places import DEFAULT, Place, place_of, places, providers


async def discover(
    env: Mapping[str, str], within: float = 0.3, ports: Mapping[int, Kind] = DEFAULT
) -> Found:
    """The servers on this machine and those that the environment names, after `within` seconds at
    most: what was learned until then is returned. A key is sent only to the server it is for."""
    asked, problems = places(env, ports)
    visits = [Visit(place, key=env.get(place.key_in, "")) for place in asked]
    await all_of(visits, within)
    return Found(
        servers=tuple(each.server for each in visits if each.server),
        providers=providers(env),
        silent=tuple(
            Silent(each.place.kind or Kind.OTHER, each.place.url, each.lack(within))
            for each in visits
            if not each.server
        ),
        problems=(*problems, *(each.problem(within) for each in visits if each.is_notable)),
    )


async def look(url: str, model: str = "", within: float = 3.0, *, key: str = "") -> Look:
    """What the server at `url` is, and what it says of `model`, or of the only one it has."""
    try:
        visit = Visit(place_of(url), model, key)
    except ValueError as wrong:
        return Look(problem=f"The address of the server cannot be used: {wrong}.")
    await all_of([visit], within)
    problem = visit.problem(within) if visit.is_notable else ""
    if (server := visit.server) is None:
        return Look(problem=problem)
    chosen = the_one(server, model)
    if model and not chosen and not problem:
        names = ", ".join(each.name for each in server.models[:10]) or "none"
        problem = f"{server.kind.title} at {server.url} does not offer '{model}'; it has: {names}."
    return Look(server=server, model=chosen, problem=problem)


def the_one(server: Server, model: str) -> Offered | None:
    for each in server.models:
        if each.name in (model, f"{model}:latest"):
            return each
    # llama.cpp answers for the one model it has, whatever it is called.
    is_meant = not model or server.kind is Kind.LLAMA_CPP
    return server.models[0] if is_meant and len(server.models) == 1 else None


class Visit(Sighting):
    """A sighting, and how it went."""

    def __init__(self, place: Place, model: str = "", key: str = "") -> None:
        super().__init__(place, model, key)
        self.no: NoAnswer | None = None
        self.is_over = False

    async def go(self) -> None:
        """First the list of models that every server has, then what only its kind can tell."""
        kind = None
        try:
            kind = await models(self)
        except NoAnswer as no:
            self.no = no
        if not (self.no and self.no.is_absent):
            for way in ways(self.place.kind if kind is None else kind):
                with suppress(NoAnswer):
                    await way(self)
                    break
        self.is_over = True

    @property
    def is_notable(self) -> bool:
        """Whether people should hear of it: not that nothing runs on a port we only guessed."""
        if self.server or not self.is_over:
            return not self.is_over
        return self.place.is_named or bool(self.no and self.no.status in NOT_YET)

    def lack(self, within: float) -> str:
        if self.server:
            return f"did not tell everything within {within:g} seconds"
        if self.no and self.is_over:
            return self.no.why
        return f"did not answer within {within:g} seconds"

    def problem(self, within: float) -> str:
        kind = self.server.kind if self.server else self.place.kind or Kind.OTHER
        return f"{kind.title} at {self.place.url} {self.lack(within)}."


async def all_of(visits: list[Visit], within: float) -> None:
    with anyio.move_on_after(within):
        async with anyio.create_task_group() as group:
            for each in visits:
                group.start_soon(each.go)
