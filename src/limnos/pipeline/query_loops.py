# SPDX-License-Identifier: Apache-2.0
"""Loops over the rows of a query: the steps of a run, and what a check can say without the rows.

The query is read once, when a run starts, and the run's record keeps the rows for its resume. The file is read again
with the rows, so a made step has the keys and positions of one of a list. Must not know Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from limnos.model.errors import BadRequest
from limnos.names import display
from limnos.pipeline.declaration import LoopRows, Pipeline, QueryLoop
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.engine.relations import QueryNames
from limnos.pipeline.environments import in_environment
from limnos.pipeline.problems import InvalidQuery, Problem, nearest_word, within
from limnos.pipeline.python import bind_functions
from limnos.pipeline.reads import RUN_PARAMETERS, table_of


def with_loop_steps(pipeline: Pipeline, rows: Mapping[str, LoopRows], *, directory: Path) -> Pipeline:
    """Return the pipeline with the steps of its loops, and with their functions, in the same environment.

    `rows` are those of each loop by its name. Raises InvalidPipeline for rows that make no steps.
    """
    if not pipeline.loops or pipeline.expand is None:
        return pipeline
    expanded = pipeline.expand(rows)
    environment = pipeline.environment
    return bind_functions(in_environment(expanded, None if environment is None else environment.name), directory)


def encode_loops(rows: Mapping[str, LoopRows]) -> dict[str, object]:
    """Return the entry of a run's record with the rows of its loops; empty without loops."""
    if not rows:
        return {}
    return {
        "loops": {
            name: {"query": one.query, "columns": list(one.columns), "rows": [list(row) for row in one.rows]}
            for name, one in rows.items()
        }
    }


def recorded_rows(pipeline: Pipeline, record: Mapping[str, object], *, run: str) -> dict[str, LoopRows]:
    """Return the rows of the pipeline's loops from a run's record.

    Raises BadRequest for a loop that the run did not have, or that had another query then.
    """
    recorded_loops = record.get("loops")
    recorded = recorded_loops if isinstance(recorded_loops, Mapping) else {}
    rows: dict[str, LoopRows] = {}
    for loop in pipeline.loops:
        one = recorded.get(loop.name)
        if not isinstance(one, Mapping) or one.get("query") != loop.query:
            raise BadRequest(
                f"the loop of {loop.name} has another query than when run {run} began, which keeps its rows: restore "
                f"the query, or discard that run ('limnos delete run {run}') and start a new one"
            )
        rows[loop.name] = LoopRows(
            query=loop.query,
            columns=tuple(map(str, one.get("columns", ()))),
            rows=tuple(tuple(row) for row in one.get("rows", ()) if isinstance(row, list)),
        )
    return rows


def loop_tables(
    pipeline: Pipeline, *, queries: Callable[[str], QueryNames], catalogs: frozenset[str]
) -> tuple[dict[str, frozenset[Parts]], list[Problem]]:
    """Return the tables that the query of each loop reads, by the loop's name, and the problems of the queries."""
    tables: dict[str, frozenset[Parts]] = {}
    problems: list[Problem] = []
    for loop in pipeline.loops:
        try:
            query = queries(loop.query)
        except InvalidQuery as error:
            problems.append(Problem(f"{loop.name}: {error.message}", within(loop.query_at, error)))
            continue
        problems += [Problem(message, loop.query_at) for message in name_problems(pipeline, loop, query=query)]
        table_parts = [one.parts for one in query.relations if len(one.parts) > 1]
        tables[loop.name] = frozenset(
            table_of(each, catalog=pipeline.catalog, catalogs=catalogs) for each in table_parts
        )
    return tables, problems


def name_problems(pipeline: Pipeline, loop: QueryLoop, *, query: QueryNames) -> Iterator[str]:
    """Yield what is wrong with the names in a loop's query: names that are no tables, and parameters that no run has
    before it begins.
    """
    for one in query.relations:
        if len(one.parts) == 1:
            yield (
                f"{loop.name}: the query of a loop reads published tables, and '{one.parts[0]}' is none: write a table"
                " with its namespace"
            )
    parameter_names = [one.name for one in pipeline.parameters]
    for name in sorted(query.parameters - set(parameter_names)):
        if name in RUN_PARAMETERS:
            yield f"{loop.name}: the query of a loop is read before the run begins, so it has no ':{name}'"
        else:
            near_name = nearest_word(name, parameter_names)
            yield f"{loop.name}: no parameter ':{name}'{near_name}; declare it under 'parameters'"


def absent_loop_tables(
    pipeline: Pipeline,
    tables: Mapping[str, frozenset[Parts]],
    *,
    absent: frozenset[Parts],
    near: Callable[[Parts], Iterable[str]],
) -> Iterator[Problem]:
    """Yield a problem for each table in a loop's query that does not exist. `near` returns the paths of tables that may
    be meant.
    """
    for loop in pipeline.loops:
        for table in sorted(tables.get(loop.name, frozenset()) & absent):
            name = display.render(table)
            yield Problem(
                f"{loop.name}: the loop's query reads {name}, which does not exist, or you may not see"
                f" it{nearest_word(name, sorted(near(table)))}",
                loop.query_at,
            )
