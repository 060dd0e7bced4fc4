# SPDX-License-Identifier: Apache-2.0
"""Keys of a parameter: its type and its default.

Defines the record of a parameter, and checks a default against the type. Must not know runs.
"""

from __future__ import annotations

import datetime as dt

from limnos.pipeline.compound_schemas import Cases, Record, RecordKey
from limnos.pipeline.declaration import Parameter, ParameterType
from limnos.pipeline.declared_values import Scalar
from limnos.pipeline.keys.shared import TEXT
from limnos.pipeline.node_schemas import AnyScalar, Choice, NodeSite, Values


def _parameter(values: Values, site: NodeSite) -> Parameter:
    kind = ParameterType(values["type"])
    default = values.get("default")
    if default is not None and not fits(default, kind):
        raise site.bad(f"the default {default!r} is not a valid {kind.value}{_HINTS.get(kind, '')}")
    return Parameter(name="", type=kind, default=default, comment=values.get("comment"), at=site.at)


_HINTS = {
    ParameterType.DATE: ": write it like 2026-01-31",
    ParameterType.TIMESTAMP: ": write it like 2026-01-31T12:00:00Z",
    ParameterType.STRING: ": put it in quotes",
    ParameterType.BOOLEAN: ": write true or false",
}


def fits(value: Scalar, kind: ParameterType) -> bool:
    """Return whether a value is of a parameter's type. Dates and times are ISO 8601 strings."""
    if kind is ParameterType.INT:
        return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
    if kind is ParameterType.DOUBLE:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is ParameterType.BOOLEAN:
        return isinstance(value, bool)
    if not isinstance(value, str):
        return False
    try:
        if kind is ParameterType.DATE:
            dt.date.fromisoformat(value)
        elif kind is ParameterType.TIMESTAMP:
            dt.datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


TYPES = Choice(tuple(kind.value for kind in ParameterType))
PARAMETER = Cases(
    name="a parameter",
    short=TYPES,
    from_short=lambda word, site: _parameter({"type": word}, site),
    cases={
        "type": Record(
            name="a parameter",
            keys={
                "type": RecordKey(
                    value_schema=TYPES, description="Type of the value.", example="type: date", required=True
                ),
                "default": RecordKey(
                    value_schema=AnyScalar(as_text=False), description="Default value.", example="default: 2026-01-31"
                ),
                "comment": RecordKey(
                    value_schema=TEXT, description="Purpose of the parameter.", example="comment: The day to load."
                ),
            },
            build=_parameter,
        )
    },
)
