# SPDX-License-Identifier: Apache-2.0
"""Unit tests of steps: the body of a step over given rows, compared with expected rows.

`run_unit_tests` needs a Spark session and no server: every input of a step is a temporary view with the test's rows.
Write modes and expectations are not part of a test. Must not know the form in which tests are written.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import AtomicType, BinaryType, Row, StringType, StructField, StructType, VariantType

from limnos.model.errors import LimnosError
from limnos.names import display
from limnos.pipeline.declaration import Load, Pipeline, Sql, StepDeclaration, TestCell, UnitTest, UnitTestRows
from limnos.pipeline.declared_values import Parts, SourcePosition
from limnos.pipeline.engine.changes import quote_column
from limnos.pipeline.engine.inputs import call_function
from limnos.pipeline.engine.relations import query_names, splice_names
from limnos.pipeline.engine.session import temporary_view
from limnos.pipeline.engine.spark_failures import failure_of
from limnos.pipeline.engine.unit_test_values import value_fault
from limnos.pipeline.problems import Problem
from limnos.pipeline.reads import table_of
from limnos.pipeline.run.parameters import RUN_AT, RUN_ID, arguments, parameter_values
from limnos.pipeline.unit_test_results import (
    EXPECTED_ROWS_MAX,
    ColumnValue,
    RowDifference,
    UnitTestResult,
    differing_rows,
)
from limnos.pipeline.unit_test_rules import (
    DEFAULT_RUN_AT,
    TestedStep,
    expected_column_problems,
    expected_key_problems,
    given_column_problems,
    input_problems,
    moment_of,
    of_test,
    parameter_problems,
    schema_column_problems,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_RUN = "00000000-0000-0000-0000-000000000000"
"""The value of `:run_id` in a test that does not give it."""
_CODES = re.compile(r"^\[[A-Z_.0-9]+\] | ?SQLSTATE: \w+(; line \d+ pos \d+)?", re.MULTILINE)
"""Spark's codes in a message. The position is one in the query with the names of the test's views."""
_DIGITS = 12
"""Floating-point numbers are equal if so many significant digits are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitTestWork:
    """A pipeline whose Python functions are imported, with the columns of its inputs that are known without data."""

    pipeline: Pipeline
    columns: Mapping[Parts, StructType]
    catalogs: frozenset[str] = frozenset()

    def full_name(self, parts: Parts) -> Parts:
        """Return the full path of a table in a query, or the name of a source."""
        if len(parts) == 1:
            return parts
        return table_of(parts, catalog=self.pipeline.catalog, catalogs=self.catalogs)


class _InvalidTest(Exception):
    """Raised if a test itself is wrong. The problem has advice, and the position of what is wrong in the test."""

    def __init__(self, message: str, at: SourcePosition | None = None) -> None:
        super().__init__(message)
        self.at = at


def _require_none(problems: Iterator[Problem]) -> None:
    """Raise _InvalidTest for the first of the problems."""
    for problem in problems:
        raise _InvalidTest(problem.message, problem.at)


def run_unit_tests(
    spark: SparkSession, work: UnitTestWork, *, steps: Sequence[StepDeclaration], chosen: Callable[[UnitTest], bool]
) -> Iterator[UnitTestResult]:
    """Run the tests of `steps` one by one. The steps must have their functions imported."""
    for step in steps:
        for test in step.tests:
            if chosen(test):
                yield _result(spark, work, step=step, test=test)


def _result(spark: SparkSession, work: UnitTestWork, *, step: StepDeclaration, test: UnitTest) -> UnitTestResult:
    began = time.monotonic()
    message: str | None = None
    at = test.at
    rows: tuple[RowDifference, ...] = ()
    columns: tuple[str, ...] = ()
    state = "passed"
    try:
        columns, rows, different = _differences(spark, work, step=step, test=test)
        if different:
            state, message = "failed", f"{different:,} row{'s differ' if different > 1 else ' differs'}"
    except _InvalidTest as error:
        state, message, at = "invalid", str(error), error.at or test.at
    except LimnosError as error:
        state, message = "invalid", error.message
    except Exception as error:  # noqa: BLE001  (an error of Spark or of the step's function)
        state, message = "failed", _failure_text(error, test)
    return UnitTestResult(
        step=step.name,
        test=test.name,
        state=state,
        message=message,
        columns=columns,
        differences=rows,
        seconds=time.monotonic() - began,
        problem=None if message is None else of_test(Problem(message, at), step=step, test=test),
    )


def _failure_text(error: Exception, test: UnitTest) -> str:
    """Return the message of a step that failed in a test, without Spark's codes, and with advice for a column that the
    given rows lack.
    """
    text = _CODES.sub("", failure_of(error).message)
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    guessed = [(parts, rows) for parts, rows in test.given.items() if rows.columns or rows.schema is not None]
    if condition is None or not condition.startswith("UNRESOLVED_COLUMN") or not guessed:
        return text
    rows_have = "; ".join(
        f"{display.render(parts)}: {', '.join(rows.columns) or rows.schema}" for parts, rows in guessed
    )
    return f"{text} The given rows have {rows_have}; add a column that they lack to a row or to 'schema'"


def _differences(
    spark: SparkSession, work: UnitTestWork, *, step: StepDeclaration, test: UnitTest
) -> tuple[tuple[str, ...], tuple[RowDifference, ...], int]:
    """Return the compared columns, the first differing rows, and the number of all."""
    values = _parameters(work, test)
    with _inputs(spark, work, step=step, test=test) as views:
        frame = _frame(spark, work, step=step, views=views, values=values)
        _require_none(expected_column_problems(test, known=frame.columns))
        _require_none(expected_key_problems(step, test))
        names = {name.lower(): name for name in frame.columns}
        columns = tuple(names[column.lower()] for column in test.expected.columns) or tuple(frame.columns)
        chosen_schema = StructType([frame.schema[column] for column in columns])
        results = frame.select(*map(quote_column, columns)).limit(EXPECTED_ROWS_MAX + 1).collect()
        if len(results) > EXPECTED_ROWS_MAX:
            raise _InvalidTest(f"the step makes more than {EXPECTED_ROWS_MAX:,} rows: give it fewer")
        expected = _typed_frame(spark, test.expected, columns=chosen_schema, owner="'expect'").collect()
    rows, count = differing_rows(
        [_values(row) for row in expected],
        [_values(row) for row in results],
        keys=[index for index, name in enumerate(columns) if name.lower() in {key.lower() for key in step.write.keys}],
    )
    return columns, rows, count


def _parameters(work: UnitTestWork, test: UnitTest) -> dict[str, object]:
    _require_none(parameter_problems(work.pipeline, test))
    values = {name: value for name, value in test.parameters.items() if name not in (RUN_ID, RUN_AT)}
    run, moment = str(test.parameters.get(RUN_ID) or _RUN), moment_of(test.parameters.get(RUN_AT))
    return arguments(work.pipeline, parameter_values(work.pipeline, values), run=run, at=moment or DEFAULT_RUN_AT)


@contextmanager
def _inputs(
    spark: SparkSession, work: UnitTestWork, *, step: StepDeclaration, test: UnitTest
) -> Iterator[Mapping[Parts, str]]:
    """Register the rows of each input as a temporary view. Yields the views by the inputs' full names."""
    inputs = {work.full_name(parts): parts for parts in _mentioned_names(spark, step)}
    given_rows = {work.full_name(parts): (parts, rows) for parts, rows in test.given.items()}
    tested = TestedStep(pipeline=work.pipeline, step=step, inputs=inputs, full_name=work.full_name)
    if _has_own_as_of(spark, step):
        raise _InvalidTest(
            "the query reads a table AS OF a version or time, which a test cannot give: read that state in a step of "
            "its own, and test the step that reads it"
        )
    _require_none(input_problems(tested, test))
    for full, (parts, rows) in given_rows.items():
        if rows.schema is None and full in work.columns:
            _require_none(given_column_problems(test, parts, known=work.columns[full].fieldNames()))
    frames = {
        full: _typed_frame(spark, rows, columns=work.columns.get(full), owner=display.render(parts))
        for full, (parts, rows) in given_rows.items()
    }
    with _views(list(frames.values())) as names:
        yield dict(zip(frames, names, strict=True))


@contextmanager
def _views(frames: Sequence[DataFrame]) -> Iterator[tuple[str, ...]]:
    if not frames:
        yield ()
        return
    with temporary_view(frames[0]) as name, _views(frames[1:]) as others:
        yield (name, *others)


def _mentioned_names(spark: SparkSession, step: StepDeclaration) -> list[Parts]:
    """Return the names of the step's inputs, as written in its body."""
    body = step.body
    if isinstance(body, Sql):
        return list(dict.fromkeys(one.parts for one in query_names(spark, body.text).relations))
    if isinstance(body, Load):
        return [(body.source,)]
    return [value if isinstance(value, tuple) else (value,) for value in body.inputs.values()]


def _has_own_as_of(spark: SparkSession, step: StepDeclaration) -> bool:
    """Return whether the step's query reads a state of a table of a version or time."""
    body = step.body
    return isinstance(body, Sql) and any(one.travels for one in query_names(spark, body.text).relations)


def _frame(
    spark: SparkSession,
    work: UnitTestWork,
    *,
    step: StepDeclaration,
    views: Mapping[Parts, str],
    values: Mapping[str, object],
) -> DataFrame:
    body = step.body
    if isinstance(body, Load):
        return spark.table(views[body.source,])
    if isinstance(body, Sql):
        query = query_names(spark, body.text)
        texts = {one.parts: views[work.full_name(one.parts)] for one in query.relations}
        used = {name: value for name, value in values.items() if name in query.parameters}
        text = splice_names(body.text, query.relations, texts=texts, renamed=frozenset(texts))
        return spark.sql(text, args=used) if used else spark.sql(text)
    frames: dict[str, object] = {
        name: spark.table(views[work.full_name(value if isinstance(value, tuple) else (value,))])
        for name, value in body.inputs.items()
    }
    return call_function(spark, body, step=step, frames=frames, values=values)


def _typed_frame(spark: SparkSession, rows: UnitTestRows, *, columns: StructType | None, owner: str) -> DataFrame:
    """Return the rows as a DataFrame with the declared, known or inferred types. Raises _InvalidTest."""
    schema = _schema(spark, rows, columns=columns, owner=owner)
    by_lower = {field.name.lower(): index for index, field in enumerate(schema.fields)}
    texts: list[tuple[str | None, ...]] = []
    for row in rows.rows:
        cells: list[str | None] = [None] * len(schema.fields)
        for name, value in row.items():
            cells[by_lower[name.lower()]] = _text(value)
        texts.append(tuple(cells))
    frame = spark.sql(_constant_query(texts, columns=len(schema.fields)))
    typed_columns = frame.select(
        *[_cast_column(f"c{index}", field).alias(field.name) for index, field in enumerate(schema.fields)]
    )
    _require_valid(rows, texts, typed=typed_columns, owner=owner)
    return typed_columns


def _constant_query(rows: Sequence[tuple[str | None, ...]], *, columns: int) -> str:
    """Return a query for rows of strings. They are constants of the plan, so that no Spark job and no Python worker is
    needed. Values are written as bytes, so that no value can end its literal.
    """
    names = [f"c{index}" for index in range(columns)]
    if not rows:
        return f"SELECT {', '.join(f'CAST(NULL AS STRING) AS {name}' for name in names)} WHERE false"
    lines = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
    return f"SELECT {', '.join(names)} FROM VALUES {lines} AS given({', '.join(names)})"


def _literal(text: str | None) -> str:
    value = "NULL" if text is None else f"X'{text.encode().hex()}'"
    return f"CAST({value} AS STRING)"


def _schema(spark: SparkSession, rows: UnitTestRows, *, columns: StructType | None, owner: str) -> StructType:
    if rows.schema is not None:
        declared = _declared_columns(spark, rows.schema)
        declared_names = None if declared is None else declared.fieldNames()
        _require_none(schema_column_problems(rows, owner=owner, known=declared_names))
        columns = declared
    if columns is not None:
        return columns
    if not rows.columns:
        raise _InvalidTest(
            f"{owner}: its columns are not known; write {{rows: [], schema: 'id bigint, name string'}}", rows.at
        )
    return StructType([StructField(name, _inferred_type(rows, name)) for name in rows.columns])


def _declared_columns(spark: SparkSession, schema: str) -> StructType | None:
    """Return the columns of a test's own schema; None if it is no list of columns."""
    try:
        return spark.createDataFrame([], schema).schema
    except Exception:  # noqa: BLE001  (whatever Spark raises for a text that is not a list of columns)
        return None


def _inferred_type(rows: UnitTestRows, name: str) -> AtomicType:
    from pyspark.sql.types import BooleanType, DoubleType, LongType  # noqa: PLC0415

    values = [value for row in rows.rows if (value := row.get(name)) is not None]
    kinds = {type(_parse_cell(value) if rows.is_text else value) for value in values}
    if kinds == {bool}:
        return BooleanType()
    if kinds == {int}:
        return LongType()
    return DoubleType() if kinds and kinds <= {int, float} else StringType()


def _parse_cell(value: TestCell) -> object:
    text = str(value)
    for parse in (int, float):
        try:
            return parse(text)
        except ValueError:
            continue
    return text.lower() == "true" if text.lower() in ("true", "false") else text


def _text(value: TestCell) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)


def _cast_column(name: str, field: StructField) -> Any:  # noqa: ANN401  (a Column, whose class PySpark chooses when it runs)
    kind = field.dataType
    if isinstance(kind, StringType):
        return F.col(name)
    if isinstance(kind, VariantType):
        return F.try_parse_json(F.col(name))
    if isinstance(kind, (AtomicType, BinaryType)):
        return F.expr(f"try_cast({name} AS {kind.simpleString()})")
    return F.from_json(F.col(name), kind.simpleString())


def _require_valid(
    rows: UnitTestRows, texts: Sequence[tuple[str | None, ...]], *, typed: DataFrame, owner: str
) -> None:
    """Raise _InvalidTest for the first value that is not of its column's type, or would lose digits or fields in it."""
    for number, (cells, row) in enumerate(zip(texts, typed.collect(), strict=True), start=1):
        for cell, value, field in zip(cells, row, typed.schema.fields, strict=True):
            if cell is None:
                continue
            fault = value_fault(cell, value, kind=field.dataType, is_csv=rows.is_text)
            if fault is not None:
                raise _InvalidTest(
                    f"{owner}, row {number}: '{cell[:80]}' of column '{field.name}' {fault}",
                    rows.rows_at[number - 1] if len(rows.rows_at) >= number else rows.at,
                )


def _values(row: Row) -> tuple[ColumnValue, ...]:
    return tuple(ColumnValue(_comparable(value), _value_text(value)) for value in row)


def _comparable(value: object) -> object:
    """Return a value that is equal for equal results: floating-point numbers by their first digits."""
    if isinstance(value, float):
        return f"{value:.{_DIGITS}g}" if value else "0"
    if isinstance(value, (list, tuple)):
        return tuple(_comparable(each) for each in value)
    if isinstance(value, dict):
        return tuple(sorted(((repr(key), _comparable(each)) for key, each in value.items()), key=repr))
    return repr(value)


def _value_text(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value.asDict(recursive=True) if isinstance(value, Row) else value)
