# SPDX-License-Identifier: Apache-2.0
"""Tables and queries of databases, by JDBC.

Opens a declared source with its driver, in one query or in partitions by a column. The password comes from the
environment and is passed to Spark as an option; no file, plan, log or process list contains it. Must not know Limnos
tables.

A database cannot be pinned: each read gets the current data, with a cursor column that of the rows up to the pinned
value. Several connections read the partitions, each in its own transaction.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DateType, NumericType, StructField, TimestampNTZType, TimestampType

from limnos.pipeline.engine.sources.database_increments import (
    CursorMark,
    change_of,
    cursor_problem,
    from_mark,
    read_mark,
    type_text,
    up_to,
    value_expression,
)
from limnos.pipeline.engine.sources.values import SourceRead, SourceReadRequest, first_line
from limnos.pipeline.outcomes import ReadPin
from limnos.pipeline.source_declarations import Jdbc
from limnos.spark.jars import JDBC_DRIVERS, ensure

_OURS = frozenset(
    {
        "url",
        "user",
        "password",
        "dbtable",
        "query",
        "partitioncolumn",
        "lowerbound",
        "upperbound",
        "numpartitions",
    }
)
_URL = re.compile(r"jdbc:([a-z0-9]+):.+")
_MARIADB, _MYSQL = "jdbc:mariadb:", "jdbc:mysql:"
_PERMITTED = "permitMysqlScheme"
"""The parameter by which MariaDB's driver takes a URL of MySQL."""
_SECRET_IN_URL = re.compile(r"(?i)[?&;](password|pwd|sslpassword)=|//[^/?@]*:[^/?@]*@")
_TALKATIVE = "org.apache.spark.sql.execution.datasources.jdbc.connection"
_FETCH_ROWS = "10000"
_WHOLE_BECAUSE = "a database is read as it is"
_ADDED: set[tuple[str, str]] = set()
"""The names of archives already added, with the id of the session."""


def database_frame(request: SourceReadRequest, jdbc: Jdbc) -> SourceRead:
    """Open a table or query of a database. Raises SourceFailed if the database refuses or is unreachable, and the
    errors of downloading the driver.
    """
    options = _options(request, jdbc)
    frame = _load_frame(request, options)
    if jdbc.partition_column is not None and jdbc.partitions > 1:
        frame = _load_frame(request, options | _partitions(request, jdbc, frame=frame, options=options))
    if jdbc.cursor_column is None:
        return SourceRead(frame=frame, pin=ReadPin(name=request.source.name, whole_because=_WHOLE_BECAUSE))
    return _up_to_pin(request, jdbc, frame=frame, options=options)


def pin_database(request: SourceReadRequest, jdbc: Jdbc) -> ReadPin | None:
    """Return the highest value of the cursor column for a run that starts now; None without a cursor. Raises
    SourceFailed as `database_frame` does.
    """
    if jdbc.cursor_column is None:
        return None
    options = _options(request, jdbc)
    mark = _mark(request, jdbc, frame=_load_frame(request, options), options=options)
    return ReadPin(name=request.source.name, fingerprint=mark.text())


def _options(request: SourceReadRequest, jdbc: Jdbc) -> dict[str, str]:
    """Return Spark's options for a read in one part, with the driver added to Spark."""
    _check(request, jdbc)
    options = {"fetchsize": _FETCH_ROWS, **jdbc.options, **_access(request, jdbc)}
    _add_driver(request, options)
    _limit_log_level(request.spark)
    options["dbtable"] = jdbc.table or f"({_query(jdbc)}\n) AS limnos_source"
    return options


def _up_to_pin(request: SourceReadRequest, jdbc: Jdbc, *, frame: DataFrame, options: Mapping[str, str]) -> SourceRead:
    """Return the rows up to the pinned value of the cursor; of an increment those since the published value."""
    mark = read_mark(request.pinned.fingerprint) if request.pinned else None
    if mark is None or mark.column not in frame.columns:
        mark = _mark(request, jdbc, frame=frame, options=options)
    rows = frame.where(up_to(frame, mark))
    pin = ReadPin(name=request.source.name, fingerprint=mark.text())
    if request.incremental and request.before is not None:
        former_mark = read_mark(request.before.fingerprint)
        reason = change_of(former_mark, mark)
        if reason is not None:
            return SourceRead(frame=rows, pin=replace(pin, whole_because=f"source {request.source.name}: {reason}"))
        if former_mark is not None and former_mark.value is not None:
            since = replace(former_mark, column=mark.column)
            rows = rows.where(from_mark(frame, since, lateness=jdbc.lateness))
    return SourceRead(frame=rows, pin=pin)


def _mark(request: SourceReadRequest, jdbc: Jdbc, *, frame: DataFrame, options: Mapping[str, str]) -> CursorMark:
    """Read the highest value of the cursor column, and how many rows are within its lateness."""
    field = _field_of(request, jdbc.cursor_column or "", frame=frame, use="read new rows by")
    if (problem := cursor_problem(field.dataType, jdbc.lateness)) is not None:
        raise request.failed(f"its cursor_column {field.name} {problem}.")
    name, table = _quote_column(field.name, jdbc), options["dbtable"]
    nulls = f"CASE WHEN EXISTS (SELECT 1 FROM {table} WHERE {name} IS NULL) THEN 1 ELSE 0 END"
    bounds = f"(SELECT max({name}) AS high, {nulls} AS nulls FROM {table}) AS limnos_cursor"
    row = (
        _load_frame(request, {**options, "dbtable": bounds})
        .selectExpr(f"{value_expression(field.dataType)} AS high", "nulls")
        .collect()[0]
    )
    if row["nulls"]:
        raise request.failed(
            f"its cursor_column {field.name} is NULL in some rows, which no increment would have: choose a column"
            " without NULL, or a `query` that fills or leaves out such rows."
        )
    zone = str(request.spark.conf.get("spark.sql.session.timeZone"))
    mark = CursorMark(column=field.name, type=type_text(field.dataType, zone=zone), value=row["high"])
    if jdbc.lateness is None or mark.value is None:
        return mark
    recent = frame.where(up_to(frame, mark) & from_mark(frame, mark, lateness=jdbc.lateness)).count()
    return replace(mark, recent=recent)


def _field_of(request: SourceReadRequest, column: str, *, frame: DataFrame, use: str) -> StructField:
    """Return a column by its name in any case. Raises SourceFailed if there is none."""
    field = next((field for field in frame.schema.fields if field.name.lower() == column.lower()), None)
    if field is None:
        raise request.failed(f"there is no column {column!r} to {use}; its columns are {', '.join(frame.columns)}.")
    return field


def _quote_column(name: str, jdbc: Jdbc) -> str:
    """Return a column's name quoted for the database."""
    if jdbc.url.startswith((_MYSQL, _MARIADB)):
        return "`" + name.replace("`", "``") + "`"
    return '"' + name.replace('"', '""') + '"'


def _check(request: SourceReadRequest, jdbc: Jdbc) -> None:
    if not _URL.fullmatch(jdbc.url):
        raise request.failed("its URL is not a JDBC URL: write jdbc:postgresql://host:5432/database.")
    if _SECRET_IN_URL.search(jdbc.url):
        raise request.failed(
            "its URL contains a password: remove it, and name an environment variable in `password_env`."
        )
    if (jdbc.table is None) == (jdbc.query is None):
        raise request.failed("write either `table` or `query`.")
    ours = sorted(name for name in jdbc.options if name.lower() in _OURS)
    if ours:
        raise request.failed(f"the option {ours[0]} has its own key in a source: use that key.")
    if jdbc.partitions < 1:
        raise request.failed("`partitions` must be at least 1.")


def _query(jdbc: Jdbc) -> str:
    """Return the query without a final semicolon, which a subquery must not have."""
    return (jdbc.query or "").rstrip().rstrip(";")


def _access(request: SourceReadRequest, jdbc: Jdbc) -> Mapping[str, str]:
    access = {"url": _spark_url(jdbc)}
    if jdbc.user is not None:
        access["user"] = jdbc.user
    if jdbc.password_env is not None:
        password = os.environ.get(jdbc.password_env)
        if not password:
            raise request.failed(f"the environment variable {jdbc.password_env} is not set: put the password there.")
        access["password"] = password
    return access


def _spark_url(jdbc: Jdbc) -> str:
    """Return the URL by which Spark quotes names as the database does: it has a dialect of MySQL and none of MariaDB,
    where its quotes would make a text of each name.
    """
    own_driver = {name.lower(): value for name, value in jdbc.options.items()}.get("driver", JDBC_DRIVERS["mariadb"][0])
    if (
        not jdbc.url.startswith((_MYSQL, _MARIADB))
        or own_driver != JDBC_DRIVERS["mariadb"][0]
        or _PERMITTED in jdbc.url
    ):
        return jdbc.url
    separator = "&" if "?" in jdbc.url else "?"
    return f"{_MYSQL}{jdbc.url.removeprefix(_MARIADB).removeprefix(_MYSQL)}{separator}{_PERMITTED}"


def _add_driver(request: SourceReadRequest, options: dict[str, str]) -> None:
    """Add the driver of a supported database to Spark. Other drivers must be on Spark's class path (`spark.jars`)."""
    match = _URL.fullmatch(options["url"])
    driver = JDBC_DRIVERS.get(match[1]) if match else None
    if driver is None or "driver" in {name.lower() for name in options}:
        return
    options["driver"], artifact = driver
    add_archive(request.spark, ensure(artifact))


def add_archive(spark: SparkSession, archive: Path) -> None:
    """Add a JAR file to the class path of a session, once: sessions of one Spark have class paths of their own."""
    context = getattr(spark, "_jsparkSession", None)
    key = (str(context.sessionUUID() if context is not None else cast("Any", spark).session_id), archive.name)
    if key in _ADDED:
        return
    if context is not None:
        spark.sql(f"ADD JAR '{archive}'")
    else:
        spark.addArtifact(str(archive))
    _ADDED.add(key)


def _limit_log_level(spark: SparkSession) -> None:
    """Limit a logger to INFO, because at DEBUG it would log each connection with its password.

    Executors on other machines have log settings of their own, which this does not change.
    """
    if getattr(spark, "_jsparkSession", None) is None:
        return
    machine: Any = spark._jvm  # noqa: SLF001 - PySpark sets the level of all loggers only
    log4j = machine.org.apache.logging.log4j
    log4j.core.config.Configurator.setLevel(_TALKATIVE, log4j.Level.INFO)


def _load_frame(request: SourceReadRequest, options: Mapping[str, str]) -> DataFrame:
    try:
        frame = request.spark.read.format("jdbc").options(**options).load()
        frame.schema  # noqa: B018 - over Spark Connect nothing is looked up before
    except (PySparkException, Py4JJavaError) as error:
        raise request.failed(f"the database cannot be read: {_driver_error_line(error, options)}") from None
    return frame


def _partitions(
    request: SourceReadRequest, jdbc: Jdbc, *, frame: DataFrame, options: Mapping[str, str]
) -> dict[str, str]:
    """Return Spark's options for a read in partitions, with the bounds of the partition column; empty if one read is
    enough. The first partition includes rows with NULL. Raises SourceFailed for a column that cannot be used.
    """
    column = jdbc.partition_column or ""
    field = _field_of(request, column, frame=frame, use="partition it by")
    if not isinstance(field.dataType, (NumericType, DateType, TimestampType, TimestampNTZType)):
        kind = field.dataType.simpleString()
        raise request.failed(
            f"it cannot be partitioned by {column}, which is {kind}: choose a number, a date or a time."
        )
    name = _quote_column(field.name, jdbc)
    bounds = f"(SELECT min({name}) AS low, max({name}) AS high FROM {options['dbtable']}) AS limnos_bounds"
    # Spark accepts numeric bounds only without a fraction.
    ends = ("floor(low)", "ceil(high)") if isinstance(field.dataType, NumericType) else ("low", "high")
    asked_for = _load_frame(request, {**options, "dbtable": bounds})
    row = asked_for.selectExpr(f"CAST({ends[0]} AS STRING) AS low", f"CAST({ends[1]} AS STRING) AS high").collect()[0]
    if row["low"] is None or row["low"] == row["high"]:
        return {}
    return {
        "partitionColumn": field.name,
        "lowerBound": row["low"],
        "upperBound": row["high"],
        "numPartitions": str(jdbc.partitions),
    }


def _driver_error_line(error: PySparkException | Py4JJavaError, options: Mapping[str, str]) -> str:
    """Return the error's first line, with the password masked if the driver repeats it."""
    first = first_line(error)
    password = options.get("password")
    return first.replace(password, "***") if password else first
