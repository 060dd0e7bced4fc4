# SPDX-License-Identifier: Apache-2.0
"""Lineage of Lance tables that Spark writes or reads, which OpenLineage's listener does not report.

To Spark a Lance table is a data source of Python, without a name that a listener could resolve. So each session with
lineage has a listener of its own, which Spark calls after each query. It sends an event for writes to a Lance table,
and for writes of its rows to another table. The lineage has tables, no columns.
"""

from __future__ import annotations

import logging
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from limnos import __version__
from limnos.names import display
from limnos.spark.plan_sources import Java, PlanSource, plan_leaves, source_of_leaf

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

    from limnos.spark.lance.server_access import ServerAccess

logger = logging.getLogger(__name__)

_WRITES: Final = frozenset(
    {"AppendData", "OverwriteByExpression", "OverwritePartitionsDynamic", "ReplaceData", "WriteDelta"}
)
"""Plans of writes to tables. CREATE TABLE AS SELECT is followed by one of them."""
_SPEC: Final = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"


class LanceLineageListener:
    """Spark's `QueryExecutionListener` of a session. Errors are only logged: the query has already succeeded."""

    def __init__(self, home: ServerAccess, *, application: str) -> None:
        self._home = home
        self._application = application

    def onSuccess(self, *call: Java) -> None:  # noqa: N802 - Spark's name
        """Send the lineage of a write that concerns a Lance table.

        `call` has the name of the function, the execution of the query, and the time that it took.
        """
        _, execution, _ = call
        try:
            event = self._event(execution.analyzed())
            if event is not None:
                with self._home.client() as client:
                    client.lineage.send(event)
        except Exception as error:  # noqa: BLE001 - Spark would remove the listener
            logger.warning("the lineage of a Lance table was not stored: %s", error)

    def onFailure(self, *_call: Java) -> None:  # noqa: N802 - Spark's name
        """No-op: a failed query has written nothing."""

    def _event(self, plan: Java) -> dict[str, object] | None:
        if str(plan.getClass().getSimpleName()) not in _WRITES:
            return None
        target = source_of_leaf(plan.table())
        if target is None or target.table is None:
            return None
        sources = dict.fromkeys(source for _, source in plan_leaves(plan.query()) if source != target)
        if not sources or not any(each.is_lance for each in (target, *sources)):
            return None
        return self._write_event(target, sources)

    def _write_event(self, target: PlanSource, sources: Iterable[PlanSource]) -> dict[str, object]:
        server_namespace = f"limnos://{self._home.metalake}"

        def dataset(source: PlanSource) -> dict[str, object]:
            if source.table is None:
                return {"namespace": source.namespace, "name": source.name}
            return {"namespace": server_namespace, "name": display.render(source.table)}

        return {
            "eventType": "COMPLETE",
            "eventTime": datetime.now(UTC).isoformat(),
            "producer": f"https://pypi.org/project/limnos/{__version__}",
            "schemaURL": _SPEC,
            "run": {"runId": str(uuid.uuid4())},
            "job": {"namespace": server_namespace, "name": f"{self._application}.{dataset(target)['name']}"},
            "inputs": [dataset(each) for each in sources],
            "outputs": [dataset(target)],
        }

    class Java:
        """The interface that py4j implements by this class."""

        implements: Final = ["org.apache.spark.sql.util.QueryExecutionListener"]


def listen_for_lance(spark: SparkSession, home: ServerAccess) -> None:
    """Register the listener in a session."""
    from pyspark.java_gateway import ensure_callback_server_started  # noqa: PLC0415 - PySpark is in the extra

    context = spark.sparkContext
    ensure_callback_server_started(context._gateway)  # type: ignore[no-untyped-call]  # noqa: SLF001
    listener = LanceLineageListener(home, application=str(context.appName))
    spark._jsparkSession.listenerManager().register(listener)  # noqa: SLF001 - PySpark has no call for it
