"""What people are told when something is wrong: which file, which line, which key, what instead."""

import pytest
from inline_snapshot import snapshot

from holdfast.core.tools import ToolSpec
from holdfast.settings import BadSettings, run_settings
from tests.settings.folders import Folders


def refusal(folders: Folders, text: str, **more: object) -> list[str]:
    folders.user(text)
    with pytest.raises(BadSettings) as wrong:
        folders.load(**more)  # type: ignore[arg-type]
    return [folders.told(each) for each in wrong.value.problems]


def test_every_value_of_the_wrong_kind_is_named_at_once(folders: Folders) -> None:
    text = """\
model = 3
summaries = "yes"
instructions = ["a"]
limits = 3
on_limit = "explode"
permission_mode = "yolo"

[patience]
repeat_told = 3.5

[sandbox]
writable = "src"
network = 1

[tools]
caps = { shell = "long" }
timeout = nan
top = true

[budget]
output = 1.5
window = "large"

[mcp_servers]
files = "npx"
"""
    assert refusal(folders, text) == snapshot(
        [
            "home/.config/holdfast/config.toml, line 1: model is 3, and must be the name of a model or a list of names.",
            'home/.config/holdfast/config.toml, line 2: summaries is "yes", and must be true or false.',
            'home/.config/holdfast/config.toml, line 3: instructions is ["a"], and must be a text.',
            "home/.config/holdfast/config.toml, line 4: limits is 3, and must be a table.",
            'home/.config/holdfast/config.toml, line 5: on_limit is "explode", and must be one of conclude, error.',
            'home/.config/holdfast/config.toml, line 6: permission_mode is "yolo", and must be one of plan, ask, accept-edits, auto, deny.',
            "home/.config/holdfast/config.toml, line 9: patience.repeat_told is 3.5, and must be a whole number.",
            'home/.config/holdfast/config.toml, line 12: sandbox.writable is "src", and must be a list of texts.',
            "home/.config/holdfast/config.toml, line 13: sandbox.network is 1, and must be true or false.",
            'home/.config/holdfast/config.toml, line 16: tools.caps.shell is "long", and must be a whole number.',
            "home/.config/holdfast/config.toml, line 17: tools.timeout is nan, and must be a number.",
            "home/.config/holdfast/config.toml, line 18: tools.top is true, and must be a whole number.",
            'home/.config/holdfast/config.toml, line 21: budget.output is 1.5, and must be a whole number, or a share of the window between 0 and 1, or "auto".',
            'home/.config/holdfast/config.toml, line 22: budget.window is "large", and must be a whole number, or "auto".',
            'home/.config/holdfast/config.toml, line 25: mcp_servers.files is "npx", and must be a table.',
        ]
    )


def test_variables_are_named_by_their_own_names(folders: Folders) -> None:
    env = {
        "HOLDFAST_LIMITS_ROUNDS": "many",
        "HOLDFAST_SUMMARIES": "perhaps",
        "HOLDFAST_PERMISSION_MODE": "yolo",
        "HOLDFAST_LIMITS_SECONDS": "",
        "HOLDFAST_BUDGET_OUTPUT": "1.5",
        "HOLDFAST_TOOLS_CAPS": "shell",
        "HOLDFAST_TOOLS_ALLOW": "[1, 2]",
    }
    assert refusal(folders, "", env=env) == snapshot(
        [
            'HOLDFAST_BUDGET_OUTPUT: budget.output is "1.5", and must be a whole number, or a share of the window between 0 and 1, or "auto".',
            'HOLDFAST_LIMITS_ROUNDS: limits.rounds is "many", and must be a whole number.',
            'HOLDFAST_PERMISSION_MODE: permission_mode is "yolo", and must be one of plan, ask, accept-edits, auto, deny.',
            'HOLDFAST_SUMMARIES: summaries is "perhaps", and must be true or false.',
            'HOLDFAST_TOOLS_ALLOW: tools.allow is "[1, 2]", and must be a list of texts.',
            'HOLDFAST_TOOLS_CAPS: tools.caps is "shell", and must be a table of names and whole numbers.',
        ]
    )


def test_flags_are_named_and_an_unknown_one_is_always_an_error(folders: Folders) -> None:
    flags = {
        "limits.rounds": "many",
        "limit.rounds": 3,
        "summaries": 1,
        "ui": "dark",
        "model": None,
    }

    assert refusal(folders, "", flags=flags) == snapshot(
        [
            'the flag limits.rounds: limits.rounds is "many", and must be a whole number.',
            "the flag limit.rounds: there is no setting 'limit.rounds'; did you mean limits.rounds?",
            "the flag summaries: summaries is 1, and must be true or false.",
            'the flag ui: ui is "dark", and must be a table.',
        ]
    )


def test_unknown_keys_are_warned_of_and_are_errors_if_that_is_wanted(folders: Folders) -> None:
    text = """\
permision_mode = 'ask'
rounds = 3
[budget]
evict_bellow = 5
[limts]
rounds = 3
[limits]
cost = 3
max_rounds = 3
[patience]
unheard_of = 1
"""
    folders.user(text)
    env = {"HOLDFAST_LIMIT_ROUNDS": "3", "HOLDFAST_NONSENSE": "1", "HOLDFAST_UI": "dark"}

    loaded = folders.load(env=env)

    assert [folders.told(each) for each in loaded.warnings] == snapshot(
        [
            "home/.config/holdfast/config.toml, line 1: there is no setting 'permision_mode'; did you mean permission_mode?",
            "home/.config/holdfast/config.toml, line 2: there is no setting 'rounds'; did you mean limits.rounds?",
            "home/.config/holdfast/config.toml, line 4: there is no setting 'budget.evict_bellow'; did you mean budget.evict_below?",
            "home/.config/holdfast/config.toml, line 5: there is no setting 'limts'; did you mean limits?",
            "home/.config/holdfast/config.toml, line 8: there is no setting 'limits.cost'; did you mean limits.dollars?",
            "home/.config/holdfast/config.toml, line 9: there is no setting 'limits.max_rounds'; did you mean limits.rounds?",
            "home/.config/holdfast/config.toml, line 11: there is no setting 'patience.unheard_of'.",
            "HOLDFAST_LIMIT_ROUNDS is not read: there is no such setting. Did you mean HOLDFAST_LIMITS_ROUNDS?",
            "HOLDFAST_NONSENSE is not read: there is no such setting.",
            "HOLDFAST_UI is not read: what it names is a table, for a file.",
        ]
    )
    assert refusal(folders, text, env=env, strict=True) == [
        folders.told(each) for each in loaded.warnings
    ]


def test_a_file_that_cannot_be_read_is_named(folders: Folders) -> None:
    assert refusal(folders, "rounds = \n") == snapshot(
        ["home/.config/holdfast/config.toml is not TOML: Invalid value (at line 1, column 10)."]
    )
    folders.user("").write_bytes(b"\xff\xfe")
    with pytest.raises(BadSettings) as wrong:
        folders.load()
    assert folders.told(wrong.value) == snapshot(
        "home/.config/holdfast/config.toml is not text in UTF-8."
    )


def test_the_line_is_that_of_the_key_also_behind_long_texts_and_quoted_names(
    folders: Folders,
) -> None:
    text = '''\
instructions = """
[limits]
rounds = "not this one"
"""
"limits".calls = "x"   # a comment
[ "patience" ]  # another
stale_told = "y"
[models."a.b"]
window = 3
'''
    assert refusal(folders, text) == snapshot(
        [
            'home/.config/holdfast/config.toml, line 5: limits.calls is "x", and must be a whole number.',
            'home/.config/holdfast/config.toml, line 7: patience.stale_told is "y", and must be a whole number.',
        ]
    )


@pytest.mark.parametrize("name", ["localcwork", "nothing", "../buddy", ""])
def test_a_profile_that_does_not_exist_is_told_with_those_that_do(
    folders: Folders, name: str
) -> None:
    told = refusal(folders, "", profile=name)

    expected = {
        "localcwork": snapshot(
            [
                "there is no profile 'localcwork'. Did you mean localcowork? There are: buddy, buddy-compact, default, docuchat, docuchat-v2, localcowork, localcowork-now, sitebuilder."
            ]
        ),
        "nothing": snapshot(
            [
                "there is no profile 'nothing'. There are: buddy, buddy-compact, default, docuchat, docuchat-v2, localcowork, localcowork-now, sitebuilder."
            ]
        ),
        "../buddy": snapshot(
            [
                "there is no profile '../buddy'. Did you mean buddy? There are: buddy, buddy-compact, default, docuchat, docuchat-v2, localcowork, localcowork-now, sitebuilder."
            ]
        ),
        "": snapshot(
            [
                "there is no profile ''. There are: buddy, buddy-compact, default, docuchat, docuchat-v2, localcowork, localcowork-now, sitebuilder."
            ]
        ),
    }
    assert told == expected[name]


def test_profiles_that_cannot_be_used_are_named(folders: Folders) -> None:
    folders.profile("a", 'extends = "b"\n')
    folders.profile("b", 'extends = "a"\n')
    folders.profile("c", "extends = 3\n")
    folders.profile("d", 'profile = "buddy"\n')
    folders.profile("e", "limits.rounds = 'x'\n")
    folders.profile("f", "= 3\n")

    told = {name: refusal(folders, "", profile=name) for name in "abcdef"}

    assert told == snapshot(
        {
            "a": ["the profile a builds on itself: a -> b -> a."],
            "b": ["the profile b builds on itself: b -> a -> b."],
            "c": [
                "the profile home/.config/holdfast/profiles/c.toml: extends is 3, and must be a text."
            ],
            "d": [
                "the profile home/.config/holdfast/profiles/d.toml: a profile cannot choose a profile; write extends."
            ],
            "e": [
                'the profile home/.config/holdfast/profiles/e.toml, line 1: limits.rounds is "x", and must be a whole number.'
            ],
            "f": [
                "the profile home/.config/holdfast/profiles/f.toml is not TOML: Invalid statement (at line 1, column 1)."
            ],
        }
    )


def test_numbers_that_contradict_each_other_are_named_with_their_origins(folders: Folders) -> None:
    folders.profile("mine", "patience.repeat_stopped = 4\n")

    assert refusal(folders, "limits.rounds = 0\n") == snapshot(
        [
            "limits.rounds is 0 (from the user file home/.config/holdfast/config.toml, line 1), and must be above zero: no run could begin."
        ]
    )
    assert refusal(folders, "limits.dollars = 0\n") == snapshot(
        [
            "limits.dollars is 0 (from the user file home/.config/holdfast/config.toml, line 1), and must be at least a millionth."
        ]
    )
    assert refusal(folders, "limits.calls_per_reply = 500\n") == snapshot(
        [
            "limits.calls_per_reply is 500 (from the user file home/.config/holdfast/config.toml, line 1); more than 128 calls cannot be answered in one step."
        ]
    )
    assert refusal(folders, "[patience]\nrepeat_told = 9\n", profile="mine") == snapshot(
        [
            "patience.repeat_told (9, from the user file home/.config/holdfast/config.toml, line 2) must be at least 1 and not above repeat_stopped (4, from the profile home/.config/holdfast/profiles/mine.toml, line 1): the model or its user is told before a run is stopped."
        ]
    )
    assert refusal(folders, "tools.timeout = -1\n") == snapshot(
        [
            "tools.timeout is -1 (from the user file home/.config/holdfast/config.toml, line 1), and must be above zero."
        ]
    )
    assert refusal(folders, "budget.warn_at = 80\n") == snapshot(
        [
            "budget.warn_at is 80 (from the user file home/.config/holdfast/config.toml, line 1), and must be a share of the window: above 0 and not above 1."
        ]
    )
    assert refusal(folders, 'tools.choice = "allow"\n') == snapshot(
        [
            'tools.choice is "allow" (from the user file home/.config/holdfast/config.toml, line 1), and tools.allow names no tool: a model could do nothing.'
        ]
    )
    assert refusal(folders, "", env={"HOLDFAST_WAITS_FIRST": "0"}) == snapshot(
        ["waits.first is 0 (from the variable HOLDFAST_WAITS_FIRST), and must be above zero."]
    )


def in_a_window(folders: Folders, text: str, window: int, *tools: ToolSpec) -> str:
    folders.user("")
    folders.of_project(text)
    with pytest.raises(BadSettings) as wrong:
        run_settings(folders.load(), model="m", window=window, system="", tools=tools)
    return folders.told(wrong.value)


def test_numbers_that_do_not_fit_a_window_are_named_with_their_origins(folders: Folders) -> None:
    shell = ToolSpec(name="shell", cap=20)

    assert in_a_window(folders, "[budget]\nevict_below = 4000\n", 32_768) == snapshot(
        "budget.evict_below (4000, from the project file project/.holdfast/config.toml, line 2) must be above min_round (1500, scaled to a window of 32768) plus one result (about 2835 tokens): otherwise the gate ends the run before eviction makes room."
    )
    assert in_a_window(folders, "budget.output = 4000\n", 4096) == snapshot(
        "budget.output (4000, from the project file project/.holdfast/config.toml, line 1) + safety (102, scaled to a window of 4096) + min_round (204, scaled to a window of 4096) = 4306 leaves nothing of a window of 4096 (from the model)."
    )
    assert in_a_window(folders, "budget.evict_to = 4000\n", 4096) == snapshot(
        "budget.evict_to (4000, from the project file project/.holdfast/config.toml, line 1) can never be reached in a window of 4096 (from the model) with 512 + 102 reserved."
    )
    assert in_a_window(
        folders, "budget.evict_below = 0.5\nbudget.evict_to = 100", 8192
    ) == snapshot(
        "budget.evict_to (100, from the project file project/.holdfast/config.toml, line 2) is not above evict_below (4096, 0.5 of the window, from the project file project/.holdfast/config.toml, line 1): eviction would end where it begins."
    )
    assert in_a_window(folders, "caps.result = 20\n", 8192) == snapshot(
        "caps.result is 20 (from the project file project/.holdfast/config.toml, line 1), and must be at least 80: not even the notice that something was cut would fit."
    )
    assert in_a_window(folders, "caps.line = 300\ncaps.digest = 100\n", 8192) == snapshot(
        "caps.digest (100, from the project file project/.holdfast/config.toml, line 2) is below caps.line (300, from the project file project/.holdfast/config.toml, line 1)."
    )
    assert in_a_window(folders, "caps.result = 60000\n", 8192) == snapshot(
        "one result of 60000 characters (about 31147 tokens) does not fit beside the 1228 tokens that are reserved in a window of 8192 (from the model). Also given: caps.result (60000, from the project file project/.holdfast/config.toml, line 1)."
    )
    assert in_a_window(folders, "", 100) == snapshot(
        "no run fits into a window of 100 tokens: budget.evict_to (50) can never be reached in a window of 100 with 64 + 2 reserved."
    )
    assert in_a_window(folders, "", 8192, shell) == snapshot(
        "the cap of the tool shell is 20; below 80: not even the notice that something was cut would fit."
    )
