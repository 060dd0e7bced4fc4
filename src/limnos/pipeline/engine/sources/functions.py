# SPDX-License-Identifier: Apache-2.0
"""Python functions as sources: they yield Arrow batches or rows, or return a DataFrame. Resources of dlt are such
functions.

Calls the declared function and stages its rows. A function with a parameter `spark` is called in the driver and returns
a DataFrame. Any other function yields Arrow batches or rows. It runs in one task of an executor, batch by batch, so no
rows pass through the driver; its imports must be installed there. Rows are staged, because a second call may return
different rows.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pickle import PicklingError
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
_BATCH_ROWS = 10_000
"""Rows of one Arrow batch, of a function that yields rows."""
_ADVICE = "yield Arrow batches, tables or rows as dict"
_WHOLE_BECAUSE = "each run calls the function again"


def function_frame(request: SourceReadRequest, kind: PythonSource) -> SourceRead:
    """Call the function of a source.

    Raises SourceFailed: the function is missing or fails, its arguments do not match, or its columns differ from the
    declared columns.
    """
    function = kind.callable or _import_function(request, kind.function)
    try:
        parameters = {} if getattr(function, "is_transformer", False) else inspect.signature(function).parameters
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
        raise request.failed(f"{kind.function} yields rows, so its columns must be declared: write `schema`.")
    schema = request.declared(kind.schema)
    if _is_resource(function):
        return _read_resource(request, kind, resource=function, arguments=arguments, schema=schema)
    batches = _task(function, arguments, name=kind.function, schema=schema)
    try:
        return request.spark.range(0, 1, 1, 1).mapInArrow(batches, schema)
    except PicklingError as error:
        raise request.failed(
            f"{kind.function} cannot be sent to an executor: {error}. Make such values in the function; for a resource"
            " of dlt name the resource itself."
        ) from error


def _is_resource(function: object) -> bool:
    """Return whether a function is a resource or a source of dlt, whose settings are where the command runs."""
    return type(function).__module__.startswith("dlt.")


def _read_resource(
    request: SourceReadRequest,
    kind: PythonSource,
    *,
    resource: Any,  # noqa: ANN401 - of dlt
    arguments: Mapping[str, object],
    schema: StructType,
) -> DataFrame:
    """Read a resource of dlt in the driver, whose memory has all of its rows as Arrow columns."""
    import pyarrow as pa  # noqa: PLC0415

    if not hasattr(resource, "args_bound"):
        raise request.failed(f"{kind.function} is a source of several resources: name one of them.")
    arrow = to_arrow_schema(schema)
    try:
        rows = resource if resource.args_bound or resource.is_transformer else resource(**arguments)
        tables = list(_fitting_tables(rows, arrow, name=kind.function))
    except Exception as error:  # whatever the resource's own code raises
        first = next(iter(str(error).splitlines()), "no reason was given")
        raise request.failed(f"{kind.function} failed: {type(error).__name__}: {first}") from error
    table = pa.concat_tables(tables) if tables else arrow.empty_table()
    return request.spark.createDataFrame(table, schema)


def _task(
    function: Callable[..., object], arguments: Mapping[str, object], *, name: str, schema: StructType
) -> Callable[[Iterable[Any]], Iterable[Any]]:
    """Return the function that the executor runs.

    It is pickled by value, because its modules may not be importable there.
    """
    for module in (sys.modules.get(str(getattr(function, "__module__", None))), inspect.getmodule(_task)):
        if module is not None and module.__name__ != "__main__":
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    arrow = to_arrow_schema(schema)
    values = dict(arguments)

    def batches(_: Iterable[Any]) -> Iterable[Any]:
        for _one in _:  # consume the single input row
            pass
        for table in _fitting_tables(function(**values), arrow, name=name):
            yield from table.to_batches()

    return batches


def _fitting_tables(yielded: Any, arrow: Any, *, name: str) -> Iterator[Any]:  # noqa: ANN401 - of pyarrow
    """Yield what a function yields as Arrow tables with the declared schema. Raises TypeError and ValueError for rows
    that do not fit.
    """
    import pyarrow as pa  # noqa: PLC0415

    count = 0
    for columns in _columns_of(yielded, arrow.names, name=name):
        for field in arrow:
            _require_fit(columns[field.name], field, name=name, rows_before=count)
        table = pa.table([_array(columns[field.name], field.type) for field in arrow], schema=arrow)
        count += table.num_rows
        yield table


def _columns_of(yielded: Any, names: Sequence[str], *, name: str) -> Iterator[dict[str, Any]]:  # noqa: ANN401
    """Yield the declared columns of what a function yields, some rows at a time: Arrow columns of its batches and
    tables, lists of values of its rows (mappings, alone or in lists). A row without a column has NULL there.

    Raises TypeError for other values, and ValueError if a column is missing in a batch or in all rows.
    """
    import pyarrow as pa  # noqa: PLC0415

    if not hasattr(yielded, "__iter__"):
        raise TypeError(f"{name} returned {type(yielded).__name__}: {_ADVICE}.")
    rows: list[Mapping[str, object]] = []
    row_names: set[str] = set()
    for item in yielded:
        is_arrow = isinstance(item, (pa.RecordBatch, pa.Table))
        if rows and (is_arrow or len(rows) >= _BATCH_ROWS):
            yield {column: [row.get(column) for row in rows] for column in names}
            rows = []
        if is_arrow:
            _require_columns(item.schema.names, names, name=name)
            table = item if isinstance(item, pa.Table) else pa.Table.from_batches([item])
            yield {column: table.column(column) for column in names}
            continue
        group = item if isinstance(item, list) else [item]
        if not all(isinstance(row, Mapping) for row in group):
            raise TypeError(f"{name} yielded {type(item).__name__}: {_ADVICE}.")
        rows.extend(group)
        row_names.update(*group)
    if rows:
        yield {column: [row.get(column) for row in rows] for column in names}
    if row_names:
        _require_columns(sorted(row_names), names, name=name)


def _require_columns(present: Sequence[str], names: Sequence[str], *, name: str) -> None:
    missing_columns = [column for column in names if column not in present]
    if missing_columns:
        raise ValueError(f"{name} yielded no column {missing_columns[0]!r}; it has {', '.join(present)}.")


def _array(column: Any, kind: Any) -> Any:  # noqa: ANN401 - of pyarrow
    """Convert an Arrow column or a list of values to a type. Raises ArrowException, TypeError or ValueError.

    A list may have texts for times and numbers, also beside other values.
    """
    import pyarrow as pa  # noqa: PLC0415

    if not isinstance(column, list):
        return column.cast(kind)
    failures = (pa.ArrowException, TypeError, ValueError, OverflowError)
    with contextlib.suppress(*failures):
        return pa.array(column, kind)
    with contextlib.suppress(*failures):
        return pa.array(column).cast(kind)
    return pa.chunked_array([pa.array([value]).cast(kind) for value in column], kind)


def _require_fit(column: Any, field: Any, *, name: str, rows_before: int) -> None:  # noqa: ANN401 - of pyarrow
    """Raise ValueError with the first row whose value does not fit the declared column: another type, or NULL."""
    import pyarrow as pa  # noqa: PLC0415

    def fits(first: int, end: int) -> bool:
        part = column[first:end]
        try:
            array = _array(part, field.type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return False
        return field.nullable or not array.null_count

    first, end = 0, len(column)
    if fits(first, end):
        return
    expected = f"{field.type}{'' if field.nullable else ' and not NULL'}"
    if not end:
        raise ValueError(f"{name} yielded the column {field.name!r} as {column.type}, and it must be {expected}.")
    while end - first > 1:
        middle = (first + end) // 2
        if fits(first, middle):
            first = middle
        else:
            end = middle
    value = column[first] if isinstance(column, list) else column[first].as_py()
    raise ValueError(
        f"{name} yielded {value!r} in row {rows_before + first + 1}, column {field.name!r}, which must be {expected}."
    )
