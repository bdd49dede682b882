"""What `models` is told of the settings: its own values, made of ours.

Imports stand inside the functions: settings are read by programs that ask no model.
"""

from typing import TYPE_CHECKING

from holdfast.settings.origins import BadSettings
from holdfast.settings.values import Values

if TYPE_CHECKING:
    from holdfast.models.catalog import Rule
    from holdfast.models.fallback import Retries
    from holdfast.models.wire import Waits


def retries(values: Values) -> "Retries":
    from holdfast.core.events import Failure
    from holdfast.models.fallback import Retries

    said = values.retries
    return Retries(
        tries={
            Failure.BUSY: said.busy,
            Failure.GARBLED: said.garbled,
            Failure.GONE: said.gone,
        },
        first_wait=said.first_wait,
        longest_wait=said.longest_wait,
        most_patience=said.most_patience,
        loading=said.loading,
        loading_wait=said.loading_wait,
        rest=said.rest,
    )


def waits(values: Values) -> "Waits":
    from holdfast.models.wire import Waits

    said = values.waits
    return Waits(connect=said.connect, first=said.first, between=said.between, soon=said.soon)


def catalog_rules(values: Values) -> tuple["Rule", ...]:
    """The user's own rules, to go before those of the catalogue. Raises `BadSettings`."""
    from holdfast.models.catalog import BadCatalog, Rule, rule_of

    found: list[Rule] = []
    if values.dialect != "auto" and values.model:
        names = [form for name in values.model for form in forms(name)]
        found.append(rule_of({"exact": names, "dialect": values.dialect}, ""))
    for name, table in values.models.items():
        try:
            found.append(rule_of({**table, "exact": forms(name)}, ""))
        except BadCatalog as wrong:
            raise BadSettings([f'[models."{name}"]: {wrong}.']) from wrong
    return tuple(found)


def forms(name: str) -> list[str]:
    """The name as it was written, and without who serves it: the catalogue is asked for that."""
    if name.startswith(("http://", "https://")):
        return [name.partition("#")[2] or name]
    return [name, *filter(None, [name.partition("/")[2]])]
