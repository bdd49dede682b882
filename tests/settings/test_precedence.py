"""Flag > environment > project file > user file > profile > default, and every value says whose
it is."""

import tempfile
from enum import Enum
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from holdfast.settings import Layer
from holdfast.settings.kinds import (
    AMOUNT,
    KEYS,
    MODELS,
    NUMBER,
    NUMBERS,
    OPEN,
    TEXT,
    TEXTS,
    YES_NO,
    Key,
)
from holdfast.settings.loading import ADDED
from holdfast.settings.reading import toml
from holdfast.settings.showing import flat
from tests.settings.folders import Folders

BOUND_TO_OTHERS = {
    "profile", "patience.repeat_told", "patience.repeat_stopped", "patience.stale_told",
    "patience.stale_stopped", "tools.choice", "budget.warn_at",
}  # fmt: skip
PLAIN = [
    key
    for key in KEYS.values()
    if key.name not in OPEN | ADDED | BOUND_TO_OTHERS and key.kind is not NUMBERS
]
SAID = [Layer.PROFILE, Layer.USER, Layer.PROJECT, Layer.ENVIRONMENT, Layer.FLAG]
TEXT_OF_WORDS = st.text("abcxyz äß", min_size=1).map(str.strip).filter(bool)


def values_of(key: Key) -> st.SearchStrategy[object]:
    """What may stand in a file for this key."""
    kind = key.kind
    if kind is YES_NO:
        return st.booleans()
    if kind is NUMBER:
        return st.integers(1, 1_000).map(lambda quarters: quarters / 4)
    if kind is TEXT or kind.says.startswith(TEXT.says):
        return TEXT_OF_WORDS.filter(lambda word: word != "auto")
    if kind in (TEXTS, MODELS) or kind.says.startswith(TEXTS.says):
        return st.lists(TEXT_OF_WORDS, min_size=1, max_size=3)
    if kind.says.startswith("one of "):
        return st.sampled_from(kind.says.removeprefix("one of ").split(", "))
    if kind.says.startswith(AMOUNT.says):
        return st.integers(1, 1_000) | st.sampled_from([0.25, 0.5]) | st.just("auto")
    return st.integers(80, 120)


@st.composite
def said(draw: st.DrawFn) -> tuple[Key, dict[Layer, object]]:
    key = draw(st.sampled_from(PLAIN))
    layers = draw(st.sets(st.sampled_from(SAID)))
    return key, {layer: draw(values_of(key)) for layer in sorted(layers)}


def in_a_file(key: Key, value: object) -> str:
    return f"{key.name} = {toml(value)}\n"


def in_a_variable(value: object) -> str:
    return toml(value) if not isinstance(value, str) else value


@given(said())
def test_the_strongest_layer_wins_and_the_origin_says_so(
    said: tuple[Key, dict[Layer, object]],
) -> None:
    key, layers = said
    with tempfile.TemporaryDirectory() as root:
        folders = Folders(Path(root))
        folders.project.mkdir()
        folders.profile(
            "mine", in_a_file(key, layers[Layer.PROFILE]) if Layer.PROFILE in layers else ""
        )
        if Layer.USER in layers:
            folders.user(in_a_file(key, layers[Layer.USER]))
        if Layer.PROJECT in layers:
            folders.of_project(in_a_file(key, layers[Layer.PROJECT]))
        env = {}
        if Layer.ENVIRONMENT in layers:
            env[key.variable] = in_a_variable(layers[Layer.ENVIRONMENT])
        flags = {key.name: layers[Layer.FLAG]} if Layer.FLAG in layers else {}

        loaded = folders.load(env=env, flags=flags, profile="mine")

    strongest = max(layers, default=Layer.DEFAULT)
    expected = key.kind.of(layers[strongest]) if layers else key.default
    found = dict(flat(loaded.values))[key.name]
    assert (found, loaded.origin(key.name).layer) == (expected, strongest)
    others = {name for name in loaded.origins if name not in (key.name, "profile")}
    assert others == set()


def test_every_key_can_be_written_into_a_file_as_it_is_shown(folders: Folders) -> None:
    shown = {
        name: toml(value.value if isinstance(value, Enum) else value)
        for name, value in flat(folders.load().values)
        if name not in OPEN and value != {}
    }
    folders.user("".join(f"{name} = {value}\n" for name, value in shown.items()))

    assert folders.load(strict=True).values == folders.load(profile="default").values


def test_permissions_and_secrets_add_up_so_that_no_project_lifts_what_its_user_denies(
    folders: Folders,
) -> None:
    folders.user('permissions.deny = ["shell(rm *)"]\nsecrets.names = ["A"]\n')
    folders.of_project('permissions.deny = ["edit(.env)", "shell(rm *)"]\n')

    loaded = folders.load(env={"HOLDFAST_SECRETS_NAMES": "B, C"})

    assert loaded.values.permissions.deny == ("shell(rm *)", "edit(.env)")
    assert loaded.values.secrets.names == ("A", "B", "C")
    assert folders.told(loaded.origin("permissions.deny")) == (
        "the project file project/.holdfast/config.toml, line 1 and "
        "the user file home/.config/holdfast/config.toml, line 1"
    )


def test_entries_of_a_table_come_together_from_all_layers(folders: Folders) -> None:
    folders.user(
        '[mcp_servers.files]\ncommand = "files"\n[mcp_servers.mail]\nurl = "http://mail"\n'
    )
    folders.of_project('[mcp_servers.files]\ncommand = "ours"\n[tools.caps]\nshell = 500\n')
    flags = {"mcp_servers.web": {"command": "web"}, "tools.caps": {"read": 900}}

    loaded = folders.load(flags=flags)

    assert loaded.values.mcp_servers == {
        "files": {"command": "ours"},
        "mail": {"url": "http://mail"},
        "web": {"command": "web"},
    }
    assert loaded.values.tools.caps == {"shell": 500, "read": 900}
    layers = {name: each.layer for name, each in loaded.origins.items() if "guidance" not in name}
    assert {name: layer for name, layer in layers.items() if layer is not Layer.PROFILE} == {
        "mcp_servers.files": Layer.PROJECT,
        "mcp_servers.mail": Layer.USER,
        "mcp_servers.web": Layer.FLAG,
        "tools.caps.shell": Layer.PROJECT,
        "tools.caps.read": Layer.FLAG,
    }


def test_the_profile_may_be_named_by_any_layer(folders: Folders) -> None:
    folders.user('profile = "buddy"\n')
    assert folders.load().values.limits.rounds == 20
    folders.of_project('profile = "docuchat"\n')
    assert folders.load().values.limits.rounds == 5
    assert folders.load(env={"HOLDFAST_PROFILE": "localcowork-now"}).values.limits.rounds == 10
    assert folders.load(profile="docuchat-v2").values.limits.calls == 5


def test_the_file_of_a_project_is_read_only_in_a_trusted_folder(folders: Folders) -> None:
    file = folders.of_project("limits.rounds = 7\n")

    loaded = folders.load(trusted=False)

    assert loaded.values.limits.rounds == 300
    assert loaded.warnings == (f"{file} is not read, because the folder is not trusted.",)
    assert loaded.files == ()
    assert folders.load().files == (file,)


def test_a_project_is_found_up_to_the_root_of_its_repository_and_no_further(
    folders: Folders,
) -> None:
    folders.write(".holdfast/config.toml", "limits.rounds = 1\n")
    inner = Folders(folders.root / "project" / "src" / "deep")
    inner.project.mkdir(parents=True)

    assert inner.load().values.limits.rounds == 300
    folders.of_project("limits.rounds = 7\n")
    assert inner.load().values.limits.rounds == 300, "there is no repository yet"
    folders.write("project/.git", "gitdir: elsewhere\n")
    assert inner.load().values.limits.rounds == 7


def test_holdfast_home_moves_everything(folders: Folders) -> None:
    folders.user("limits.rounds = 1\n")
    folders.write("moved/config.toml", "limits.rounds = 2\n")
    folders.write("moved/profiles/mine.toml", "limits.calls = 3\n")

    loaded = folders.load(env={"HOLDFAST_HOME": str(folders.root / "moved")}, profile="mine")

    assert (loaded.values.limits.rounds, loaded.values.limits.calls) == (2, 3)


def test_the_file_of_the_user_is_not_taken_for_one_of_a_project(folders: Folders) -> None:
    file = folders.of_project("limits.rounds = 2\n")

    loaded = folders.load(env={"HOLDFAST_HOME": str(file.parent)}, trusted=False)

    assert (loaded.values.limits.rounds, loaded.warnings, loaded.files) == (2, (), (file,))
    assert loaded.origin("limits.rounds").layer is Layer.USER


def test_xdg_config_home_is_where_the_user_file_is(folders: Folders) -> None:
    folders.write("xdg/holdfast/config.toml", "limits.rounds = 4\n")

    assert (
        folders.load(env={"XDG_CONFIG_HOME": str(folders.root / "xdg")}).values.limits.rounds == 4
    )
    assert folders.load(env={"XDG_CONFIG_HOME": "xdg"}).values.limits.rounds == 300


def test_nothing_is_remembered_between_two_loads(folders: Folders) -> None:
    folders.user("limits.rounds = 1\n")
    assert folders.load().values.limits.rounds == 1
    folders.user("limits.rounds = 2\n")
    assert folders.load().values.limits.rounds == 2
