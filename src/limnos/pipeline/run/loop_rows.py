# SPDX-License-Identifier: Apache-2.0
"""Rows of loops over queries for a plan, read with Spark as a run reads them when it starts.

Nothing is written. Must not print.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from limnos.model.errors import LimnosError
from limnos.pipeline.checks import CheckResult, check
from limnos.pipeline.engine.driver import SparkEngine
from limnos.pipeline.problems import InvalidPipeline
from limnos.pipeline.run.parameters import parameter_values

if TYPE_CHECKING:
    from limnos.client import Client
    from limnos.pipeline.declaration import LoopRows
    from limnos.pipeline.engine.driver import Session


def check_with_rows(checked: CheckResult, spark: Session, *, client: Client) -> CheckResult:
    """Check a pipeline again with the steps of the rows that the queries of its loops return now.

    Parameters have their defaults. A query that cannot be read is named as not checked, with the reason; rows that make
    no valid steps are problems. A pipeline without loops over queries is not checked again.
    """
    if checked.loops is None:
        return checked
    declared = checked.declared
    rows: dict[str, LoopRows] = {}
    unread: list[str] = []
    with closing(SparkEngine(spark)) as engine:
        for loop in declared.loops:
            try:
                rows[loop.name] = engine.loop_rows(declared, loop, parameters=parameter_values(declared, {}))
            except LimnosError as error:
                unread.append(f"the rows of {loop.name}: {error.message}")
    try:
        again = check(declared, client=client, loop_rows=rows)
    except InvalidPipeline as error:
        return replace(checked, problems=error.problems)
    return replace(again, unchecked=(*unread, *again.unchecked))
