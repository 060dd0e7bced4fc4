"""Which single objects a statement looks up by their keys.

May import `conditions`, `carried` and `stored`. Must not know an engine. A key that conditions leave no choice of is all that an engine has to look for; the whole
statement is worked out afterwards over what it finds.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from limnos.sqlpp.carried import column_type, literal
from limnos.sqlpp.conditions import Condition
from limnos.sqlpp.stored import at_path
from limnos.sqlpp.values.model import MISSING, Value

if TYPE_CHECKING:
    from limnos.sqlpp.stored import Form

SCANS_MAX: Final = 4
"""So many datasets a statement may name where each is looked at by a key."""
Key: TypeAlias = Sequence[Condition]
"""A value for each of a dataset's key fields."""


def key_in(form: Form, conditions: Sequence[Condition]) -> Key | None:
    """The key that conditions leave no choice of; None where they leave some."""
    found = [_pinned(form, path, among=conditions) for path in form.keys]
    key = tuple(one for one in found if one is not None)
    return key if key and len(key) == len(found) else None


def _pinned(form: Form, path: tuple[str, ...], *, among: Sequence[Condition]) -> Condition | None:
    """A condition that leaves one value of a field, with that value as the field's type has it."""
    type_ = column_type(form.type, path)
    for one in among:
        if type_ is None or one.path != path or one.operator != "=":
            continue
        value = one.value if type_.name == "uuid" and isinstance(one.value, uuid.UUID) else literal(type_, one.value)
        if value is not MISSING:
            return Condition(path, "=", value)
    return None


def key_of(form: Form, one: dict[str, Value]) -> Key:
    """The key of an object, as conditions."""
    return tuple(Condition(path, "=", at_path(one, path)) for path in form.keys)
