"""The tools there are now. Those of a server come and go with it; nothing is run here."""

from collections.abc import Callable, Iterable, Iterator

from holdfast.core.tools import ToolSpec
from holdfast.tools.base import Tool


class Toolbox:
    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._sources: dict[str, tuple[Tool, ...]] = {}
        self._watching: dict[object, Callable[[], None]] = {}
        for tool in tools:
            if self.get(tool.name) is not None:
                raise ValueError(f"two tools are named '{tool.name}'; a call could mean either.")
            self._sources[tool.source] = (*self._sources.get(tool.source, ()), tool)

    def get(self, name: str) -> Tool | None:
        """Of two with one name the one whose source came first: no server can take the place of
        a tool that was there."""
        return next((tool for tool in self if tool.name == name), None)

    def __iter__(self) -> Iterator[Tool]:
        for tools in self._sources.values():
            yield from tools

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """One of each name, in an order that a server which comes back does not change."""
        first: dict[str, ToolSpec] = {}
        for tool in self:
            first.setdefault(tool.name, tool.spec)
        return tuple(first.values())

    def put(self, source: str, tools: Iterable[Tool]) -> bool:
        """Replace all tools of a source. True if the specifications changed; then those who
        watch are told. Tools that are running are not disturbed."""
        before = self.specs
        self._sources[source] = tuple(tools)
        if self.specs == before:
            return False
        for callback in tuple(self._watching.values()):
            callback()
        return True

    def watch(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back after every change; what is returned ends it."""
        key = object()
        self._watching[key] = callback

        def unsubscribe() -> None:
            self._watching.pop(key, None)

        return unsubscribe
