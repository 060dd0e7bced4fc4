# SPDX-License-Identifier: Apache-2.0
"""OpenLineage events in JSON: checks them, and converts them to lineage between datasets and columns.

Must not know tables, callers or stores. Source: OpenLineage specification 2-0-2 with its facets `symlinks`, `catalog`,
`version`, `parent`, `jobType` and `columnLineage`; other facets are ignored.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, NamedTuple

import msgspec

from limnos.model.errors import BadRequest

EVENTS_MAX = 100
"""The maximum number of events in one request."""
DATASETS_MAX = 1000
"""The maximum number of inputs, or of outputs, of one event."""
LINKS_MAX = 20_000
"""The maximum number of pairs of columns in one event."""
_TEXT_MAX = 2000

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=_TEXT_MAX, pattern=r"\A[^\x00]*\Z")]
"""A name: not too long for the store, and without zero bytes, which no store accepts."""


class _EventPart(msgspec.Struct, frozen=True, rename="camel"):
    """Base class of the parts of an event; unknown fields are ignored."""


class _SymlinkIdentifier(_EventPart, frozen=True):
    namespace: Text
    name: Text


class _Symlinks(_EventPart, frozen=True):
    identifiers: Annotated[list[_SymlinkIdentifier], msgspec.Meta(max_length=20)] = []


class _CatalogFacet(_EventPart, frozen=True):
    name: Text | None = None
    warehouse_uri: str | None = None


class _VersionFacet(_EventPart, frozen=True):
    dataset_version: str = ""


class _Transformation(_EventPart, frozen=True):
    type: str = "DIRECT"
    subtype: Annotated[str, msgspec.Meta(max_length=100, pattern=r"\A[^\x00]*\Z")] | None = None


class _InputField(_EventPart, frozen=True):
    namespace: Text
    name: Text
    field: Text
    transformations: list[_Transformation] | None = None


class _OutputField(_EventPart, frozen=True):
    input_fields: list[_InputField] = []


class _ColumnLineage(_EventPart, frozen=True):
    fields: dict[Text, _OutputField] = {}
    dataset: list[_InputField] = []


class _Facets(_EventPart, frozen=True):
    symlinks: _Symlinks | None = None
    catalog: _CatalogFacet | None = None
    version: _VersionFacet | None = None
    column_lineage: _ColumnLineage | None = None


class _Dataset(_EventPart, frozen=True):
    namespace: Text
    name: Text
    facets: _Facets | None = None


class _JobType(_EventPart, frozen=True):
    processing_type: str = ""


class _JobFacets(_EventPart, frozen=True):
    job_type: _JobType | None = None


class _Job(_EventPart, frozen=True):
    namespace: Text
    name: Text
    facets: _JobFacets | None = None


RunId = Annotated[str, msgspec.Meta(min_length=1, max_length=100, pattern=r"\A[^\x00]*\Z")]


class _RunId(_EventPart, frozen=True):
    run_id: RunId


class _ParentFacet(_EventPart, frozen=True):
    run: _RunId


class _RunFacets(_EventPart, frozen=True):
    parent: _ParentFacet | None = None


class _Run(_EventPart, frozen=True):
    run_id: RunId
    facets: _RunFacets | None = None


_Datasets = Annotated[list[_Dataset], msgspec.Meta(max_length=DATASETS_MAX)]


class _Event(_EventPart, frozen=True, kw_only=True):
    event_time: datetime
    event_type: str | None = None
    run: _Run | None = None
    job: _Job | None = None
    dataset: _SymlinkIdentifier | None = None
    inputs: _Datasets | None = None
    outputs: _Datasets | None = None


class EventDataset(NamedTuple):
    """A dataset in an OpenLineage event.

    `aliases` are its names in the facet `symlinks`; `catalog` is the catalog's name in the producer's session, and
    `warehouse` the one by which the session asked its server for it.
    """

    namespace: str
    name: str
    aliases: tuple[tuple[str, str], ...] = ()
    catalog: str | None = None
    snapshot: int | None = None
    warehouse: str | None = None

    @property
    def key(self) -> tuple[str, str]:
        """The namespace and name by which other parts of the event refer to it."""
        return self.namespace, self.name


class ColumnLink(NamedTuple):
    """A dependency of a column (`target`) on a column of another dataset.

    If `target` is None, all columns depend on the source, for example by a filter or join.
    """

    target: str | None
    source: tuple[str, str]
    source_field: str
    subtype: str
    direct: bool


class EventOutput(NamedTuple):
    """A written dataset, and the sources of its columns."""

    dataset: EventDataset
    links: tuple[ColumnLink, ...]


class EventLineage(NamedTuple):
    """The content of one event: a job wrote the outputs from the sources. Times are milliseconds since 1970.

    `parent` is the id of the parent run, or else of the run itself. The lineage of runs with the same parent is
    combined.
    """

    job: tuple[str, str]
    run: str
    parent: str
    at: int
    sources: tuple[EventDataset, ...]
    outputs: tuple[EventOutput, ...]


def events_read(body: bytes) -> list[EventLineage]:
    """Parse one event or an array of events, and return the lineage of the relevant events.

    Raises BadRequest for a malformed event. Events of completed runs, of running streams, and of jobs without a run are
    relevant if they have outputs and sources.
    """
    shape: object = list[_Event] if body.lstrip()[:1] == b"[" else _Event
    try:
        result = msgspec.json.decode(body, type=shape)
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"This is not an OpenLineage event: {error}") from None
    events: list[_Event] = result if isinstance(result, list) else [result]
    if len(events) > EVENTS_MAX:
        raise BadRequest(
            f"{len(events)} events in one request are more than the {EVENTS_MAX} that are allowed: send fewer at once"
        )
    lineages = [_lineage_of(event) for event in events]
    return [each for each in lineages if each is not None]


def _lineage_of(event: _Event) -> EventLineage | None:
    """Return the lineage of an event; None if it is not relevant, or has no inputs or no outputs.

    Raises BadRequest for an invalid event.
    """
    if event.job is None:
        if event.dataset is None:
            raise BadRequest("This is not an OpenLineage event: it has neither a job nor a dataset")
        return None
    if event.event_time.tzinfo is None:
        raise BadRequest(
            "This is not an OpenLineage event: its eventTime has no time zone, write it as 2026-01-31T12:00:00Z"
        )
    if not event.outputs or not _counts(event, event.job):
        return None
    outputs = tuple([EventOutput(_dataset(each), tuple(_links(each))) for each in event.outputs])
    if sum(len(output.links) for output in outputs) > LINKS_MAX:
        raise BadRequest(f"The event links more than the {LINKS_MAX} pairs of columns that are allowed")
    sources = _sources(event, outputs)
    if not sources:
        return None
    run = "" if event.run is None else event.run.run_id
    parent = event.run.facets.parent if event.run is not None and event.run.facets is not None else None
    return EventLineage(
        job=(event.job.namespace, event.job.name),
        run=run,
        parent=run if parent is None else parent.run.run_id,
        at=_at(event),
        sources=sources,
        outputs=outputs,
    )


def _at(event: _Event) -> int:
    """Return the time of the event in milliseconds since 1970.

    Raises BadRequest if it is not in the years 1 to 9999 in UTC.
    """
    try:
        return int(event.event_time.astimezone(UTC).timestamp() * 1000)
    except OverflowError:
        raise BadRequest("This is not an OpenLineage event: its eventTime is not in the years 1 to 9999") from None


def _counts(event: _Event, job: _Job) -> bool:
    if event.run is None or event.event_type == "COMPLETE":
        return True
    kind = None if job.facets is None or job.facets.job_type is None else job.facets.job_type.processing_type
    return event.event_type == "RUNNING" and kind == "STREAMING"


def _dataset(dataset: _Dataset) -> EventDataset:
    facets = dataset.facets
    if facets is None:
        return EventDataset(namespace=dataset.namespace, name=dataset.name)
    version = "" if facets.version is None else facets.version.dataset_version
    return EventDataset(
        namespace=dataset.namespace,
        name=dataset.name,
        aliases=()
        if facets.symlinks is None
        else tuple([(each.namespace, each.name) for each in facets.symlinks.identifiers]),
        catalog=None if facets.catalog is None else facets.catalog.name,
        snapshot=int(version) if version.isascii() and version.isdigit() and len(version) < 20 else None,
        warehouse=None if facets.catalog is None else facets.catalog.warehouse_uri or None,
    )


def _links(output: _Dataset) -> list[ColumnLink]:
    lineage = None if output.facets is None else output.facets.column_lineage
    if lineage is None:
        return []
    named_fields: list[tuple[str | None, _InputField]] = [(None, each) for each in lineage.dataset]
    named_fields += [
        (field, each) for field, output_field in lineage.fields.items() for each in output_field.input_fields
    ]
    links: dict[ColumnLink, None] = {}
    for field, each in named_fields:
        for how in each.transformations or [_Transformation("DIRECT" if field else "INDIRECT")]:
            direct = how.type.upper() != "INDIRECT"
            links[
                ColumnLink(
                    target=field,
                    source=(each.namespace, each.name),
                    source_field=each.field,
                    subtype=(how.subtype or "").upper(),
                    direct=direct,
                )
            ] = None
    return list(links)


def _sources(event: _Event, outputs: tuple[EventOutput, ...]) -> tuple[EventDataset, ...]:
    """Return the distinct source datasets: the inputs, and datasets that only column lineage refers to.

    Raises BadRequest for too many sources.
    """
    datasets: dict[tuple[str, str], EventDataset] = {}
    for each in event.inputs or ():
        dataset = _dataset(each)
        existing_dataset = datasets.get(dataset.key)
        if existing_dataset is None or len(dataset.aliases) > len(existing_dataset.aliases):
            datasets[dataset.key] = dataset
    for output in outputs:
        for link in output.links:
            own_dataset = (
                output.dataset
                if link.source == output.dataset.key
                else EventDataset(namespace=link.source[0], name=link.source[1])
            )
            datasets.setdefault(link.source, own_dataset)
    if len(datasets) > DATASETS_MAX:
        raise BadRequest(f"The event names more than the {DATASETS_MAX} sources that are allowed")
    return tuple(datasets.values())
