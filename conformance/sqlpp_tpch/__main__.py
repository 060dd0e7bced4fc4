# SPDX-License-Identifier: Apache-2.0
"""`python -m conformance.sqlpp_tpch [--scale 0.01] [--rounds 3] [--only 1,6] [--load] [--dates string]`: TPC-H in SQL++
against Spark SQL on the same tables and session.

Starts its own server on SQLite, and Spark in this process. Prints a line per query: whether both results are equal, and
both times (the best of the rounds, with plain Spark first in every other round). The exit code is 0 if all were equal
and completely translated. With `--directory` the generated data is kept there. With `--load` the tables are loaded from
the generator's `.tbl` files, by LOAD statements over HTTP, and otherwise by Spark from Parquet. With `--dates string`
the dates are strings.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from conformance.sqlpp_tpch.loading import SETTINGS, generated_text, loaded
from conformance.sqlpp_tpch.queries import Both, with_dates
from conformance.sqlpp_tpch.tables import filled, generated
from limnos.rooms.sqlpp.engine.sessions import StatementSessions
from limnos.rooms.sqlpp.engine.statements import run_job
from limnos.rooms.sqlpp.engine.wire import EngineStart
from limnos.rooms.sqlpp.language import plan
from limnos.rooms.sqlpp.language.jobs import type_of
from limnos.rooms.sqlpp.language.relations import UntranslatableExpression, translate_query
from limnos.rooms.sqlpp.language.stored import storage_form_of_record
from tests.integration.live import serving
from tests.rooms.sqlpp.engine.live_engine import EngineDataverse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import SparkSession

SLOTS = 3
AIM = 1.2
DATAVERSE = ("tpch",)


class QueryResult(NamedTuple):
    """One query: whether both sides agree, and their seconds."""

    equal: bool
    sqlpp_s: float
    plain_s: float
    rows: int

    @property
    def ratio(self) -> float:
        """The time as a multiple of plain Spark's."""
        return self.sqlpp_s / self.plain_s


def main() -> int:
    """Generate, fill, query, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="numbers of queries, with commas")
    parser.add_argument("--directory", type=Path, help="where what was generated is kept; a temporary one else")
    parser.add_argument("--memory", default="3g")
    parser.add_argument("--load", action="store_true", help="load the generator's .tbl files by statements")
    parser.add_argument("--dates", choices=("date", "string"), default="date", help="type of dates, with --load")
    options = parser.parse_args()
    if options.dates == "string" and not options.load:
        parser.error("--dates string needs --load")
    every = with_dates(options.dates)
    queries = {number: every[number] for number in map(int, filter(None, options.only.split(",")))} or every
    with tempfile.TemporaryDirectory(dir=options.directory) as temporary:
        trial = Path(temporary).resolve()
        make = generated_text if options.load else generated
        files = make((options.directory or trial).resolve(), scale=options.scale)
        settings = {"LIMNOS__SQLPP__FILE_ROOTS": str(files), **SETTINGS} if options.load else {}
        with serving(trial / "server", env=settings) as server:
            start = EngineStart(
                uri=server.uri,
                metalake="lake",
                master=f"local[{SLOTS}]",
                memory=options.memory,
                slots=SLOTS,
                statements_max=1,
                scratch=str(trial),
                readable=(),
                writable=(),
                closed=(),
            )
            asking = EngineDataverse(server, None, DATAVERSE)  # type: ignore[arg-type]
            if options.load:
                loaded(asking, files=files, dates=options.dates)
            sessions = StatementSessions(start)
            sessions.begin()
            if not options.load:
                asking.rest("POST", "/iceberg/v1/lake.main/namespaces", {"namespace": list(DATAVERSE)})
                with sessions.of(asking.job("{}", "insert", target=_first(asking))) as spark:
                    filled(asking, spark, files=files)
            return _compare_queries(asking, sessions, queries=queries, rounds=options.rounds)


def _compare_queries(
    asking: EngineDataverse, sessions: StatementSessions, *, queries: dict[int, Both], rounds: int
) -> int:
    wrong, results = 0, []
    for number, both in queries.items():
        reason = uncarried(asking, both.sqlpp)
        result = compared(asking, sessions, both=both, rounds=rounds)
        results.append(result)
        wrong += not result.equal or reason is not None
        verdict = "equal" if result.equal else "DIFFERENT"
        print(
            f"query {number:2}: {verdict}, {result.rows} rows, {result.sqlpp_s:.2f} s, plain {result.plain_s:.2f} s"
            f" ({result.ratio:.2f})" + ("" if reason is None else f", not carried: {reason}"),
            flush=True,
        )
    whole = math.exp(sum(math.log(each.ratio) for each in results) / len(results))
    ours_s, plain_s = (sum(times) for times in zip(*((each.sqlpp_s, each.plain_s) for each in results), strict=True))
    print(f"total time {ours_s:.1f} s, plain {plain_s:.1f} s: ratio {ours_s / plain_s:.2f} (aim {AIM})")
    print(
        f"geometric mean of the ratios {whole:.2f} (aim {AIM}); "
        + (f"{wrong} wrong" if wrong else "all equal and carried")
    )
    return 1 if wrong else 0


def _first(asking: EngineDataverse) -> str:
    """Create a dataset that opens a session, because catalogs are registered when a job uses them."""
    asking.make("started", "{ id: bigint }", "id")
    return "started"


def uncarried(asking: EngineDataverse, text: str) -> str | None:
    """Return why a query is not translated completely; None if it is."""
    expression = asking.bound(text).expression
    if not isinstance(expression, plan.Subquery):
        return "no query"
    try:
        translate_query(
            expression.query,
            lambda _, name: storage_form_of_record(type_of(asking.refs[name].type), asking.refs[name].key).type,
        )
    except UntranslatableExpression as reason:
        return str(reason)
    return None


def compared(asking: EngineDataverse, sessions: StatementSessions, *, both: Both, rounds: int) -> QueryResult:
    """Run both sides repeatedly, in one session."""
    job = asking.pinned(asking.job(both.sqlpp, deadline_s=3600))
    with sessions.of(job) as spark:
        spark.sql(f"USE {'.'.join(asking.refs['region'].path[:-1])}")

        def ours() -> list[object]:
            return [json.loads(line) for line in run_job(spark, job, parts=sessions.parts, stop=_never)]

        def plain() -> list[object]:
            return _plain(spark, both.plain)

        times: dict[str, list[float]] = {"ours": [], "plain": []}
        results: dict[str, list[object]] = {}
        for at in range(rounds + 1):
            sides: list[tuple[str, Callable[[], list[object]]]] = [("ours", ours), ("plain", plain)]
            for name, ask in sides if at % 2 else reversed(sides):
                began = time.monotonic()
                results[name] = ask()
                times[name].append(time.monotonic() - began)
        # The first round warms up both sides.
        return QueryResult(
            same(results["ours"], results["plain"]),
            min(times["ours"][1:]),
            min(times["plain"][1:]),
            len(results["ours"]),
        )


def _never() -> None:
    """Never stop the query."""


def _plain(spark: SparkSession, text: str) -> list[object]:
    return [
        {name: value.isoformat() if hasattr(value, "isoformat") else value for name, value in row.items()}
        for row in spark.sql(text).toArrow().to_pylist()
    ]


def same(ours: Iterable[object], plain: Iterable[object]) -> bool:
    """Return whether two lists of objects are equal in order, with doubles to ten digits, because the order of addition
    varies.
    """
    return list(map(_near, ours)) == list(map(_near, plain))


def _near(one: object) -> object:
    if not isinstance(one, dict):
        return one
    known = {name: value for name, value in one.items() if value is not None}
    return {name: float(f"{value:.10g}") if isinstance(value, (float, int)) else value for name, value in known.items()}


if __name__ == "__main__":
    sys.exit(main())
