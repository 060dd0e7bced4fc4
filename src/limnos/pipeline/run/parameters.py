# SPDX-License-Identifier: Apache-2.0
"""Values of a pipeline's parameters for a run: typed, complete, and in JSON's types.

Converts text or Python values to the form in the run's record, and that form to Spark's named parameters. Dates and
times are stored as ISO 8601 text.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from datetime import UTC, date, datetime

from limnos.model.errors import BadRequest
from limnos.pipeline.declaration import Parameter, ParameterType, Pipeline
from limnos.pipeline.declared_values import Scalar

RUN_ID = "run_id"
RUN_AT = "run_at"
_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def parameter_values(pipeline: Pipeline, values: Mapping[str, object]) -> dict[str, Scalar]:
    """Return the value of each parameter. Raises BadRequest for a parameter that is unknown, missing or of a wrong
    type.
    """
    declared_parameters = {parameter.name: parameter for parameter in pipeline.parameters}
    for name in values:
        find_parameter(pipeline, name)
    results: dict[str, Scalar] = {}
    for name, parameter in declared_parameters.items():
        value = values.get(name, parameter.default)
        if value is None:
            raise BadRequest(f"parameter {name} ({parameter.type.value}) has no default: give it, --param {name}=VALUE")
        results[name] = typed_value(parameter, value)
    return results


def find_parameter(pipeline: Pipeline, name: str) -> Parameter:
    """Return the parameter of that name. Raises BadRequest, which suggests the nearest name."""
    declared_parameters = {parameter.name: parameter for parameter in pipeline.parameters}
    if name not in declared_parameters:
        raise BadRequest(_unknown_parameter_message(name, list(declared_parameters)))
    return declared_parameters[name]


def arguments(pipeline: Pipeline, values: Mapping[str, Scalar], *, run: str, at: datetime) -> dict[str, object]:
    """Return Spark's named parameters: each value in its Python type, and the run's id and time."""
    types = {parameter.name: parameter.type for parameter in pipeline.parameters}
    fields = {name: _native(types[name], value) for name, value in values.items()}
    return {RUN_ID: run, RUN_AT: at, **fields}


def typed_value(parameter: Parameter, value: object) -> Scalar:
    """Convert a parameter's value to a JSON type; dates and times become ISO 8601 text.

    Raises BadRequest if the value is not of the parameter's type.
    """
    try:
        return _typed_value(parameter.type, value)
    except (ValueError, TypeError, OverflowError):
        raise BadRequest(
            f"parameter {parameter.name}: {value!r} is not a valid {parameter.type.value}; write for example "
            f"--param {parameter.name}={PARAMETER_EXAMPLES[parameter.type]}"
        ) from None


PARAMETER_EXAMPLES = {
    ParameterType.STRING: "text",
    ParameterType.INT: "42",
    ParameterType.DOUBLE: "0.5",
    ParameterType.BOOLEAN: "true",
    ParameterType.DATE: "2026-01-31",
    ParameterType.TIMESTAMP: "2026-01-31T12:00:00Z",
}


def _typed_value(kind: ParameterType, value: object) -> Scalar:
    if kind is ParameterType.BOOLEAN:
        return value if isinstance(value, bool) else _truth(value)
    if isinstance(value, bool):
        raise TypeError(value)
    if kind is ParameterType.STRING:
        return str(value)
    if kind is ParameterType.INT:
        return _parse_integer(value)
    if kind is ParameterType.DOUBLE:
        return _finite(float(str(value)))
    if kind is ParameterType.DATE:
        return (value if isinstance(value, date) else date.fromisoformat(str(value).strip())).isoformat()
    return _moment(value).isoformat()


def _truth(value: object) -> bool:
    try:
        return _BOOLEANS[str(value).strip().lower()]
    except KeyError:
        raise ValueError(value) from None


def _parse_integer(value: object) -> int:
    number = int(str(value).strip())
    if not -(2**63) <= number < 2**63:
        raise OverflowError(value)
    return number


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise ValueError(number)
    return number


def _moment(value: object) -> datetime:
    """Parse a timestamp. One without a time zone is UTC."""
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value).strip())
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _native(kind: ParameterType, value: Scalar) -> object:
    if kind is ParameterType.DATE:
        return date.fromisoformat(str(value))
    if kind is ParameterType.TIMESTAMP:
        return datetime.fromisoformat(str(value))
    return value


def _unknown_parameter_message(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    advice = f"did you mean {near[0]}?" if near else f"it has {', '.join(known)}" if known else "it has none"
    return f"the pipeline has no parameter {name}; {advice}"
