# SPDX-License-Identifier: Apache-2.0
"""Lineage of a step: its values, their form in a run's record, and the OpenLineage event.

Contains everything about lineage that needs no Spark, so that another process than the runner's can publish a run and
report it. The engine extracts lineage from a query's plan.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from limnos import __version__
from limnos.client import Client, ClientError
from limnos.client.values import LineageReceipt
from limnos.names import InvalidName, display
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.engine.plan_columns import ColumnOrigin
from limnos.pipeline.side_tables import MALFORMED, side_table

logger = logging.getLogger(__name__)

PRODUCER: Final = f"https://pypi.org/project/limnos/{__version__}"
_SPEC: Final = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
_FACET: Final = "https://openlineage.io/spec/facets/1-2-0/ColumnLineageDatasetFacet.json"
TOLD_MAX: Final = 256 * 1024
"""The maximum length of a step's lineage in its run's record, in characters of JSON.

Longer lineage is reduced to its tables, so that it never fails a step.
"""


@dataclass(frozen=True, slots=True)
class LineageSource:
    """A source of a step: a table by its path, or an external dataset under its OpenLineage name."""

    namespace: str
    name: str
    table: Parts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryLineage:
    """Lineage of a query.

    `columns` has the origins of each column, `rows` the origins of filters, joins and grouping, which influence all
    rows.
    """

    inputs: tuple[LineageSource, ...]
    columns: Mapping[str, tuple[ColumnOrigin, ...]]
    rows: tuple[ColumnOrigin, ...] = ()


def lineage_of_tables(tables: Iterable[Parts]) -> QueryLineage:
    """Build lineage that has only tables, for queries whose columns are unknown."""
    return QueryLineage(inputs=tuple([table_source(tuple(parts)) for parts in dict.fromkeys(tables)]), columns={})


def table_source(parts: Parts) -> LineageSource:
    """Return the lineage source for a table of a catalog, by its path."""
    return LineageSource("", display.render(parts), tuple(parts))


# --------------------------------------------------------------------------------------------- in a run's record


def encode_lineage(lineage: QueryLineage) -> dict[str, object]:
    """Encode lineage as JSON. Each source is listed once; origins refer to it by its index."""
    sources = list(dict.fromkeys([*lineage.inputs, *_sources(lineage)]))
    numbers = {source: number for number, source in enumerate(sources)}

    def encode_origins(origins: Iterable[ColumnOrigin]) -> list[list[object]]:
        return [
            [numbers[each.source], each.column, each.subtype, each.direct]
            for each in origins
            if isinstance(each.source, LineageSource)
        ]

    tables: dict[str, object] = {
        "sources": [
            {"table": list(each.table)} if each.table else {"namespace": each.namespace, "name": each.name}
            for each in sources
        ],
        "inputs": len(lineage.inputs),
    }
    columns = {name: encode_origins(origins) for name, origins in lineage.columns.items() if origins}
    whole = tables | {"columns": columns, "rows": encode_origins(lineage.rows)}
    return whole if len(json.dumps(whole)) <= TOLD_MAX else tables


def _sources(lineage: QueryLineage) -> Iterable[LineageSource]:
    for origins in (*lineage.columns.values(), lineage.rows):
        yield from [each.source for each in origins if isinstance(each.source, LineageSource)]


def decode_lineage(record: Mapping[str, Any]) -> QueryLineage | None:
    """Decode the lineage of a record.

    Returns None, with a warning in the log, for lineage of another form.
    """
    try:
        return _read(record)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        logger.warning("the lineage in a run's record has another form than runners write")
        return None


def _read(record: Mapping[str, Any]) -> QueryLineage:
    sources = [
        table_source(tuple(each["table"])) if each.get("table") else LineageSource(each["namespace"], each["name"])
        for each in record["sources"]
    ]

    def origins(spelled: Sequence[Sequence[Any]]) -> tuple[ColumnOrigin, ...]:
        return tuple(
            [ColumnOrigin(sources[number], column, subtype, direct) for number, column, subtype, direct in spelled]
        )

    columns = {name: origins(spelled) for name, spelled in record.get("columns", {}).items()}
    inputs = tuple(sources[: int(record["inputs"])])
    return QueryLineage(inputs=inputs, columns=columns, rows=origins(record.get("rows", ())))


# ------------------------------------------------------------------------------------------------------- the event


def lineage_event(
    *,
    metalake: str,
    pipeline: str,
    run_id: str,
    step: str,
    targets: Sequence[Parts],
    lineage: QueryLineage,
    at: datetime | None = None,
) -> dict[str, object]:
    """Build the OpenLineage event of a step, as a separate run with the pipeline's run as parent.

    The first of `targets` is the step's own table. A quarantine table gets the step's column lineage; a table of
    malformed rows gets none.
    """
    server_namespace = f"limnos://{metalake}"
    columns = _columns(server_namespace, lineage)
    texts = side_table(targets[0], MALFORMED)

    def output(target: Parts) -> dict[str, object]:
        facets = {} if target == texts else {"columnLineage": columns}
        return {"namespace": server_namespace, "name": display.render(target), "facets": facets}

    parent = {"run": {"runId": run_id}, "job": {"namespace": server_namespace, "name": pipeline}}
    return {
        "eventType": "COMPLETE",
        "eventTime": (at or datetime.now(UTC)).isoformat(),
        "producer": PRODUCER,
        "schemaURL": _SPEC,
        "run": {
            "runId": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{server_namespace}/{run_id}/{step}")),
            "facets": {"parent": parent},
        },
        "job": {"namespace": server_namespace, "name": f"{pipeline}.{step}"},
        "inputs": [_encode_source(server_namespace, each) for each in lineage.inputs],
        "outputs": [output(each) for each in targets],
    }


def _encode_source(own: str, source: LineageSource) -> dict[str, object]:
    return {"namespace": own if source.table is not None else source.namespace, "name": source.name}


def _columns(own: str, lineage: QueryLineage) -> dict[str, object]:
    def field(origin: ColumnOrigin) -> dict[str, object]:
        how = {"type": "DIRECT" if origin.direct else "INDIRECT", "subtype": origin.subtype}
        source = _encode_source(own, origin.source) if isinstance(origin.source, LineageSource) else {}
        return source | {"field": origin.column, "transformations": [{**how, "description": "", "masking": False}]}

    return {
        "_producer": PRODUCER,
        "_schemaURL": _FACET,
        "fields": {
            name: {"inputFields": [field(one) for one in result]} for name, result in lineage.columns.items() if result
        },
        "dataset": [field(one) for one in lineage.rows],
    }


def report_lineage(
    client: Client, *, pipeline: str, run_id: str, step: str, targets: Sequence[Parts], lineage: QueryLineage
) -> LineageReceipt | None:
    """Send the lineage of a published step to the server. Returns the server's response, or None if nothing was sent.

    Errors are only logged, because the tables are already published.
    """
    if not lineage.inputs:
        return None
    metalake = client.lineage.scope.metalake
    try:
        return client.lineage.send(
            lineage_event(
                metalake=metalake, pipeline=pipeline, run_id=run_id, step=step, targets=targets, lineage=lineage
            )
        )
    except (ClientError, InvalidName) as error:
        logger.warning("the lineage of %s was not stored: %s", display.render(targets[0]), error)
        return None
