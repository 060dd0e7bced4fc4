"""`python -m conformance.sqlpp_tpch [--scale 0.01] [--rounds 3] [--only 1,6]`: TPC-H in SQL++ against Spark SQL on
the same tables and session.

Starts a server of its own on SQLite, and Spark in this process. Prints a line per query: whether both give the
same, and what each took (the best of so many rounds, plain first in every other). The exit code says whether all
were equal and carried as a whole. With `--directory` what was generated stays there.
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

from conformance.sqlpp_tpch.queries import QUERIES
from conformance.sqlpp_tpch.tables import filled, generated
from limnos.engine.sessions import StatementSessions
from limnos.engine.statements import run_job
from limnos.engine.wire import EngineStart
from limnos.sqlpp import plan
from limnos.sqlpp.jobs import type_of
from limnos.sqlpp.relations import UntranslatableExpression, translate_query
from limnos.sqlpp.stored import storage_form_of_record
from tests.engine.live_engine import EngineDataverse
from tests.integration.live import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import SparkSession

SLOTS = 3
AIM = 1.3
DATAVERSE = ("tpch",)


class Told(NamedTuple):
    """One query: whether both sides agree, and their seconds."""

    equal: bool
    sqlpp_s: float
    plain_s: float
    rows: int


def main() -> int:
    """Generate, fill, ask, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="numbers of queries, with commas")
    parser.add_argument("--directory", type=Path, help="where what was generated is kept; a temporary one else")
    parser.add_argument("--memory", default="3g")
    options = parser.parse_args()
    chosen = [int(number) for number in options.only.split(",") if number] or sorted(QUERIES)
    with tempfile.TemporaryDirectory(dir=options.directory) as temporary:
        trial = Path(temporary).resolve()
        files = generated((options.directory or trial).resolve(), scale=options.scale)
        with serving(trial / "server") as server:
            start = EngineStart(
                uri=server.uri, metalake="lake", master=f"local[{SLOTS}]", memory=options.memory, slots=SLOTS,
                statements_max=1, scratch=str(trial), readable=(), writable=(), closed=(),
            )  # fmt: skip
            return _asked(
                EngineDataverse(server, None, DATAVERSE),
                StatementSessions(start),
                files=files,
                chosen=chosen,
                rounds=options.rounds,
            )  # type: ignore[arg-type]


def _asked(asking: EngineDataverse, sessions: StatementSessions, *, files: Path, chosen: list[int], rounds: int) -> int:
    asking.rest("POST", "/iceberg/v1/lake.main/namespaces", {"namespace": list(DATAVERSE)})
    sessions.begin()
    with sessions.of(asking.job("{}", "insert", target=_first(asking))) as spark:
        filled(asking, spark, files=files)
    wrong, ratios = 0, []
    for number in chosen:
        reason = uncarried(asking, QUERIES[number].sqlpp)
        told = compared(asking, sessions, number=number, rounds=rounds)
        ratios.append(told.sqlpp_s / told.plain_s)
        wrong += not told.equal or reason is not None
        said = "equal" if told.equal else "DIFFERENT"
        print(
            f"query {number:2}: {said}, {told.rows} rows, {told.sqlpp_s:.2f} s, plain {told.plain_s:.2f} s ({ratios[-1]:.2f})"
            + ("" if reason is None else f", not carried: {reason}"),
            flush=True,
        )
    whole = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(
        f"geometric mean of the ratios {whole:.2f} (aim {AIM}); "
        + (f"{wrong} wrong" if wrong else "all equal and carried")
    )
    return 1 if wrong else 0


def _first(asking: EngineDataverse) -> str:
    """A dataset to open a session with, as catalogs are registered for what a job touches."""
    asking.make("started", "{ id: bigint }", "id")
    return "started"


def uncarried(asking: EngineDataverse, text: str) -> str | None:
    """Why a query is not carried as a whole; None for one that is."""
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


def compared(asking: EngineDataverse, sessions: StatementSessions, *, number: int, rounds: int) -> Told:
    """Ask both ways so often, in one session."""
    both = QUERIES[number]
    job = asking.job(both.sqlpp, deadline_s=3600)
    with sessions.of(job) as spark:
        spark.sql(f"USE {'.'.join(asking.refs['started'].path[:-1])}")

        def ours() -> list[object]:
            return [json.loads(line) for line in run_job(spark, job, parts=sessions.parts, stop=_never)]

        def plain() -> list[object]:
            return _plain(spark, both.plain)

        times: dict[str, list[float]] = {"ours": [], "plain": []}
        found: dict[str, list[object]] = {}
        for at in range(rounds + 1):
            sides: list[tuple[str, Callable[[], list[object]]]] = [("ours", ours), ("plain", plain)]
            for name, ask in sides if at % 2 else reversed(sides):
                began = time.monotonic()
                found[name] = ask()
                times[name].append(time.monotonic() - began)
        # The first round warms both sides up.
        return Told(
            same(found["ours"], found["plain"]), min(times["ours"][1:]), min(times["plain"][1:]), len(found["ours"])
        )


def _never() -> None:
    """Nobody stops it."""


def _plain(spark: SparkSession, text: str) -> list[object]:
    return [
        {name: value.isoformat() if hasattr(value, "isoformat") else value for name, value in row.items()}
        for row in spark.sql(text).toArrow().to_pylist()
    ]


def same(ours: Iterable[object], plain: Iterable[object]) -> bool:
    """Whether two lists of objects are equal in their order, doubles to ten digits: their sums are added in
    another order each time.
    """
    return list(map(_near, ours)) == list(map(_near, plain))


def _near(one: object) -> object:
    if not isinstance(one, dict):
        return one
    known = {name: value for name, value in one.items() if value is not None}
    return {name: float(f"{value:.10g}") if isinstance(value, (float, int)) else value for name, value in known.items()}


if __name__ == "__main__":
    sys.exit(main())
