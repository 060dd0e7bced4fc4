"""What a step's rows come from: its values, their place in a run's record, and the event that tells a server.

Job: all of it without Spark, so that whoever publishes a run can tell what it read, also another process than the one that ran it. May import `client`,
`names` and this room's values. How lineage is found in a query's plan is the engine's.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from limnos import __version__
from limnos.client import ClientError
from limnos.names import InvalidName, display
from limnos.pipeline.engine.plan_columns import ColumnOrigin
from limnos.pipeline.side_tables import MALFORMED, side_table

if TYPE_CHECKING:
    from limnos.client import Client
    from limnos.client.values import LineageReceipt
    from limnos.pipeline.declaration import Parts

logger = logging.getLogger(__name__)

PRODUCER: Final = f"https://pypi.org/project/limnos/{__version__}"
_SPEC: Final = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
_FACET: Final = "https://openlineage.io/spec/facets/1-2-0/ColumnLineageDatasetFacet.json"
TOLD_MAX: Final = 256 * 1024
"""Characters of a step's lineage in its run's record; of one that is longer only the tables are kept, as a step must not fail for it."""


@dataclass(frozen=True, slots=True)
class LineageSource:
    """What a step reads: a table by its path, or a place outside, named as OpenLineage does."""

    namespace: str
    name: str
    table: Parts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryLineage:
    """What a query's rows come from. `columns` has each column's origins, `rows` what all rows were filtered, joined or grouped by."""

    inputs: tuple[LineageSource, ...]
    columns: Mapping[str, tuple[ColumnOrigin, ...]]
    rows: tuple[ColumnOrigin, ...] = ()


def lineage_of_tables(tables: Iterable[Parts]) -> QueryLineage:
    """Say which tables a step reads, where nothing is known of columns."""
    return QueryLineage(inputs=tuple([table_source(tuple(parts)) for parts in dict.fromkeys(tables)]), columns={})


def table_source(parts: Parts) -> LineageSource:
    """Name a table as a source."""
    return LineageSource("", display.render(parts), tuple(parts))


# --------------------------------------------------------------------------------------------- in a run's record


def encode_lineage(lineage: QueryLineage) -> dict[str, object]:
    """Spell lineage as JSON: sources once, origins by their source's number."""
    sources = list(dict.fromkeys([*lineage.inputs, *_sources(lineage)]))
    numbers = {source: number for number, source in enumerate(sources)}

    def spelled(origins: Iterable[ColumnOrigin]) -> list[list[object]]:
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
    columns = {name: spelled(origins) for name, origins in lineage.columns.items() if origins}
    whole = tables | {"columns": columns, "rows": spelled(lineage.rows)}
    return whole if len(json.dumps(whole)) <= TOLD_MAX else tables


def _sources(lineage: QueryLineage) -> Iterable[LineageSource]:
    for origins in (*lineage.columns.values(), lineage.rows):
        yield from [each.source for each in origins if isinstance(each.source, LineageSource)]


def decode_lineage(record: Mapping[str, Any]) -> QueryLineage | None:
    """Read the lineage of a record back; None where another program has written something else there."""
    try:
        return _read(record)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        logger.warning("the lineage in a run's record is not as a runner writes it")
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
    """Build the OpenLineage event of a step: a run of its own within the pipeline's.

    `targets` has the step's own table first. Quarantined rows have its columns, texts of malformed rows have none.
    """
    own = f"limnos://{metalake}"
    columns = _columns(own, lineage)
    texts = side_table(targets[0], MALFORMED)

    def output(target: Parts) -> dict[str, object]:
        facets = {} if target == texts else {"columnLineage": columns}
        return {"namespace": own, "name": display.render(target), "facets": facets}

    parent = {"run": {"runId": run_id}, "job": {"namespace": own, "name": pipeline}}
    return {
        "eventType": "COMPLETE", "eventTime": (at or datetime.now(UTC)).isoformat(), "producer": PRODUCER, "schemaURL": _SPEC,
        "run": {"runId": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{own}/{run_id}/{step}")), "facets": {"parent": parent}},
        "job": {"namespace": own, "name": f"{pipeline}.{step}"},
        "inputs": [_encode_source(own, each) for each in lineage.inputs],
        "outputs": [output(each) for each in targets],
    }  # fmt: skip


def _encode_source(own: str, source: LineageSource) -> dict[str, object]:
    return {"namespace": own if source.table is not None else source.namespace, "name": source.name}


def _columns(own: str, lineage: QueryLineage) -> dict[str, object]:
    def field(origin: ColumnOrigin) -> dict[str, object]:
        how = {"type": "DIRECT" if origin.direct else "INDIRECT", "subtype": origin.subtype}
        source = _encode_source(own, origin.source) if isinstance(origin.source, LineageSource) else {}
        return source | {"field": origin.column, "transformations": [{**how, "description": "", "masking": False}]}

    return {
        "_producer": PRODUCER, "_schemaURL": _FACET,
        "fields": {name: {"inputFields": [field(one) for one in found]} for name, found in lineage.columns.items() if found},
        "dataset": [field(one) for one in lineage.rows],
    }  # fmt: skip


def report_lineage(
    client: Client, *, pipeline: str, run_id: str, step: str, targets: Sequence[Parts], lineage: QueryLineage
) -> LineageReceipt | None:
    """Tell the server what a published step's tables come from; returns what became of it, None where nothing was told.

    The tables are published whatever becomes of this: a refusal or a server that is away is a word in the log.
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
        logger.warning("the lineage of %s was not kept: %s", display.render(targets[0]), error)
        return None
