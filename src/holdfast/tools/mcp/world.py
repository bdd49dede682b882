"""What all servers share: where they run, and who hears of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from holdfast.tools.base import Tool
from holdfast.tools.mcp.asking import Ask, Sample
from holdfast.tools.mcp.status import Patience, ServerStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    env: Mapping[str, str]
    workspace: Path
    tell: Callable[[ServerStatus], None]
    ask: Ask
    changed: Callable[[str, tuple[Tool, ...]], object]
    sample: Sample | None
    patience: Patience
    jitter: Callable[[], float]
    version: str
