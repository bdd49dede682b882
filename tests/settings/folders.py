"""A home and a project on disk, for settings to be read from."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from holdfast.settings import Loaded, load


@dataclass(frozen=True)
class Folders:
    root: Path

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def project(self) -> Path:
        return self.root / "project"

    def write(self, path: str, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def user(self, text: str) -> Path:
        return self.write("home/.config/holdfast/config.toml", text)

    def of_project(self, text: str) -> Path:
        return self.write("project/.holdfast/config.toml", text)

    def profile(self, name: str, text: str) -> Path:
        return self.write(f"home/.config/holdfast/profiles/{name}.toml", text)

    def load(
        self,
        *,
        flags: Mapping[str, object] | None = None,
        env: Mapping[str, str] | None = None,
        profile: str | None = None,
        trusted: bool = True,
        strict: bool = False,
    ) -> Loaded:
        return load(
            flags=flags,
            env=env or {},
            folder=self.project,
            home=self.home,
            profile=profile,
            trusted=trusted,
            strict=strict,
        )

    def told(self, sentences: object) -> str:
        """Sentences without the name of this folder."""
        return str(sentences).replace(f"{self.root}/", "")
