# SPDX-License-Identifier: Apache-2.0
"""Python functions as sources: they yield Arrow batches or return a DataFrame.

Calls the declared function and stages its rows. A function with a parameter `spark` is called in the driver and returns
a DataFrame. Any other function yields Arrow batches. It runs in one task of an executor, batch by batch, so no rows
pass through the driver; its imports must be installed there. Rows are staged, because a second call may return
different rows.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from limnos.pipeline.engine.sources.values import SourceRead, SourceReadRequest, first_line
from limnos.pipeline.engine.staging import release, stage
from limnos.pipeline.outcomes import ReadPin
from limnos.pipeline.source_declarations import PythonSource

_SPARKS = ("PythonException", "SparkException", "Py4JJavaError", "SparkRuntimeException")
_WHOLE_BECAUSE = "each run calls the function again"


def function_frame(request: SourceReadRequest, kind: PythonSource) -> SourceRead:
    """Call the function of a source.

    Raises SourceFailed: the function is missing or fails, its arguments do not match, or its columns differ from the
    declared columns.
    """
    function = kind.callable or _import_function(request, kind.function)
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError) as error:
        raise request.failed(f"{kind.function} has no readable signature: write a Python function.") from error
    arguments = _arguments(request, kind.function, parameters=parameters)
    pin = ReadPin(name=request.source.name, whole_because=_WHOLE_BECAUSE)
    if "spark" in parameters:
        frame = _call_spark_function(request, kind, function=function, arguments=arguments)
    else:
        frame = _read_batches(request, kind, function=function, arguments=arguments)
    data_frame = _stage_frame(request, kind, frame=frame)
    return SourceRead(frame=data_frame, pin=pin, release=lambda: release(data_frame))


def _stage_frame(request: SourceReadRequest, kind: PythonSource, *, frame: DataFrame) -> DataFrame:
    """Stage the function's rows. Raises SourceFailed with the last line of an error in an executor."""
    try:
        return stage(frame)
    except (PySparkException, Py4JJavaError) as error:
        raised = re.findall(r"^\s*(?:[A-Za-z_.]+\.)?(\w+(?:Error|Exception|Invalid)): (.+)$", str(error), re.MULTILINE)
        last = next((f"{kind_}: {words}" for kind_, words in raised if kind_ not in _SPARKS), first_line(error))
        raise request.failed(f"{kind.function} failed: {last}") from error


def _import_function(request: SourceReadRequest, name: str) -> Callable[..., object]:
    module, _, function = name.partition(":")
    if not module or not function:
        raise request.failed(f"{name!r} is not a function: write module:function.")
    try:
        result = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise request.failed(f"{name} cannot be imported: {error}") from error
    if not callable(result):
        raise request.failed(f"{name} is not a function.")
    called: Callable[..., object] = result
    return called


def _arguments(
    request: SourceReadRequest, name: str, *, parameters: Mapping[str, inspect.Parameter]
) -> dict[str, object]:
    """Return the pipeline's parameters for the function's arguments of the same names. Raises SourceFailed for an
    argument without a value.
    """
    arguments: dict[str, object] = {key: request.parameters[key] for key in parameters if key in request.parameters}
    missing = [
        key
        for key, one in parameters.items()
        if key not in arguments
        and key != "spark"
        and one.default is inspect.Parameter.empty
        and one.kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    ]
    if missing:
        raise request.failed(
            f"{name} needs {missing[0]!r}, which is not a parameter of the pipeline: declare it, or give it a default."
        )
    return arguments


def _call_spark_function(
    request: SourceReadRequest, kind: PythonSource, *, function: Callable[..., object], arguments: Mapping[str, object]
) -> DataFrame:
    result: Any = function(spark=request.spark, **arguments)
    if not hasattr(result, "localCheckpoint"):
        raise request.failed(
            f"{kind.function} takes `spark`, so it must return a DataFrame; it returned {type(result).__name__}."
        )
    frame: DataFrame = result
    if kind.schema is not None:
        struct_type = request.declared(kind.schema)
        missing_columns = [field.name for field in struct_type.fields if field.name not in frame.columns]
        if missing_columns:
            raise request.failed(
                f"{kind.function} returned no column {missing_columns[0]!r}; it has {', '.join(frame.columns)}."
            )
        try:
            frame = frame.to(struct_type)
        except PySparkException as error:
            raise request.failed(
                f"{kind.function} returned other columns than its schema: {first_line(error)}"
            ) from error
    return frame


def _read_batches(
    request: SourceReadRequest, kind: PythonSource, *, function: Callable[..., object], arguments: Mapping[str, object]
) -> DataFrame:
    if kind.schema is None:
        raise request.failed(f"{kind.function} yields Arrow batches, so its columns must be declared: write `schema`.")
    schema = request.declared(kind.schema)
    batches = _task(function, arguments, name=kind.function, schema=schema)
    return request.spark.range(0, 1, 1, 1).mapInArrow(batches, schema)


def _task(
    function: Callable[..., object], arguments: Mapping[str, object], *, name: str, schema: StructType
) -> Callable[[Iterable[Any]], Iterable[Any]]:
    """Return the function that the executor runs.

    It is pickled by value, because its modules may not be importable there.
    """
    for module in (inspect.getmodule(function), inspect.getmodule(_task)):
        if module is not None and module.__name__ != "__main__":
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    arrow = to_arrow_schema(schema)
    values = dict(arguments)

    def batches(_: Iterable[Any]) -> Iterable[Any]:
        import pyarrow as pa  # noqa: PLC0415

        for _one in _:  # consume the single input row
            pass
        yielded: Any = function(**values)
        count = 0
        for batch in yielded:
            if not isinstance(batch, (pa.RecordBatch, pa.Table)):
                raise TypeError(f"{name} yielded {type(batch).__name__}: yield Arrow batches or tables.")
            missing_columns = [column for column in arrow.names if column not in batch.schema.names]
            if missing_columns:
                raise ValueError(
                    f"{name} yielded no column {missing_columns[0]!r}; it has {', '.join(batch.schema.names)}."
                )
            table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
            for field in arrow:
                _require_fit(table.column(field.name), field, name=name, rows_before=count)
            count += table.num_rows
            yield from table.select(arrow.names).cast(arrow).to_batches()

    return batches


def _require_fit(column: Any, field: Any, *, name: str, rows_before: int) -> None:  # noqa: ANN401 - of pyarrow
    """Raise ValueError with the first row whose value does not fit the declared column: another type, or NULL."""
    import pyarrow as pa  # noqa: PLC0415

    def fits(part: Any) -> bool:  # noqa: ANN401
        try:
            part.cast(field.type)
        except pa.ArrowException:
            return False
        return field.nullable or not part.null_count

    if fits(column):
        return
    expected = f"{field.type}{'' if field.nullable else ' and not NULL'}"
    if not len(column):
        raise ValueError(f"{name} yielded the column {field.name!r} as {column.type}, and it must be {expected}.")
    first, end = 0, len(column)
    while end - first > 1:
        middle = (first + end) // 2
        if fits(column.slice(first, middle - first)):
            first = middle
        else:
            end = middle
    raise ValueError(
        f"{name} yielded {column[first].as_py()!r} in row {rows_before + first + 1}, column {field.name!r}, which must"
        f" be {expected}."
    )
