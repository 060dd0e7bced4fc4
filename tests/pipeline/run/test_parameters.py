# SPDX-License-Identifier: Apache-2.0
"""Values of parameters: type checks, missing values, and Python types for Spark."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from limnos.model.errors import BadRequest
from limnos.pipeline.declaration import Parameter, ParameterType, Pipeline
from limnos.pipeline.declared_values import Scalar
from limnos.pipeline.run.parameters import arguments, parameter_values

AT = datetime(2026, 1, 31, tzinfo=UTC)


def declared(kind: ParameterType, default: Scalar = None) -> Pipeline:
    """A pipeline with one parameter `p`."""
    return Pipeline(name="x", catalog="main", steps=(), parameters=(Parameter(name="p", type=kind, default=default),))


@pytest.mark.parametrize(
    "kind,text,value,native",
    [
        (ParameterType.STRING, "a b", "a b", "a b"),
        (ParameterType.INT, "-42", -42, -42),
        (ParameterType.INT, 7, 7, 7),
        (ParameterType.DOUBLE, "0.5", 0.5, 0.5),
        (ParameterType.BOOLEAN, "True", True, True),
        (ParameterType.BOOLEAN, "no", False, False),
        (ParameterType.BOOLEAN, False, False, False),
        (ParameterType.DATE, "2026-01-31", "2026-01-31", date(2026, 1, 31)),
        (ParameterType.DATE, date(2026, 1, 31), "2026-01-31", date(2026, 1, 31)),
        (ParameterType.TIMESTAMP, "2026-01-31T00:00:00", "2026-01-31T00:00:00+00:00", AT),
    ],
)
def test_parameter_values_are_typed(kind: ParameterType, text: object, value: Scalar, native: object) -> None:
    """A value from the command line or a caller becomes JSON in the record, and a Python type for Spark."""
    values = parameter_values(declared(kind), {"p": text})

    assert values == {"p": value}
    assert arguments(declared(kind), values, run="r", at=AT) == {"run_id": "r", "run_at": AT, "p": native}


@pytest.mark.parametrize(
    "kind,text",
    [
        (ParameterType.INT, "4.2"),
        (ParameterType.INT, True),
        (ParameterType.INT, str(2**63)),
        (ParameterType.DOUBLE, "nan"),
        (ParameterType.BOOLEAN, "maybe"),
        (ParameterType.DATE, "31.1.2026"),
        (ParameterType.TIMESTAMP, "noon"),
    ],
)
def test_a_value_of_another_type_is_refused(kind: ParameterType, text: object) -> None:
    """The error for a value of another type has the parameter, its type, and an example."""
    with pytest.raises(BadRequest, match=f"parameter p: .* is not a valid {kind.value}; write for example --param p="):
        parameter_values(declared(kind), {"p": text})


def test_missing_and_unknown_parameters_are_named() -> None:
    """A parameter without a default is required; for an unknown parameter the error suggests the nearest name."""
    with pytest.raises(BadRequest, match=r"parameter p .* has no default"):
        parameter_values(declared(ParameterType.INT), {})
    with pytest.raises(BadRequest, match="no parameter q; it has p"):
        parameter_values(declared(ParameterType.INT), {"q": 1})
    assert parameter_values(declared(ParameterType.INT, 3), {}) == {"p": 3}
