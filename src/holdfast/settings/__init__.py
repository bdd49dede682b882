"""What was set, by whom: files, environment and flags, read once, into frozen values.

`load` reads all layers and keeps the origin of every value, `run_settings` makes of them what one
run needs in the window of its model, `effective` tells people every number that is in force. What
rules of permission, servers and models mean is left to those who use them.
"""

from holdfast.settings.answering import catalog_rules, retries, waits
from holdfast.settings.loading import Loaded, load, of_a_profile
from holdfast.settings.origins import BadSettings, Layer, Origin
from holdfast.settings.places import Places, places, project_file
from holdfast.settings.profiles import names as profile_names
from holdfast.settings.profiles import summary as profile_summary
from holdfast.settings.runs import run_settings
from holdfast.settings.showing import effective
from holdfast.settings.values import Values, prompt

__all__ = [
    "BadSettings",
    "Layer",
    "Loaded",
    "Origin",
    "Places",
    "Values",
    "catalog_rules",
    "effective",
    "load",
    "of_a_profile",
    "places",
    "profile_names",
    "profile_summary",
    "project_file",
    "prompt",
    "retries",
    "run_settings",
    "waits",
]
