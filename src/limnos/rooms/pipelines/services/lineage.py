# SPDX-License-Identifier: Apache-2.0
"""Lineage intake: stores the lineage that producers report, between objects of this server and external datasets, under
the caller's rights.

Must not know any wire format. An edge into an object needs the right to change it, and a source needs the right to load
it. Other edges are rejected and listed in the response, with the same message whether an object is hidden or missing
(decision record 0042). A dataset that is not an object of this server is stored as an external dataset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.formats.iceberg.field_names import NOTHING, FieldNames, field_names
from limnos.formats.openlineage_namespaces import PREFIX
from limnos.model.decisions import Decision
from limnos.model.errors import NotFound, NotInUse, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.rooms.pipelines.formats.openlineage import ColumnLink, EventDataset, EventLineage, EventOutput
from limnos.rooms.pipelines.services.lineage_datasets import ResolvedDataset, datasets_find
from limnos.services.lookup.visibility import UsableCatalogs, chain_of, require_nodes_cached, usable_catalogs_of
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.activity.lineage import (
    EVERY_FIELD,
    UNKNOWN_FIELD,
    ExternalDataset,
    LineageField,
    LineageJobRow,
    LineagePair,
)
from limnos.store.tx import Tx
from limnos.view.cache_miss import for_each

CHANGES: Final = {Kind.TABLE: Action.TABLE_COMMIT, Kind.VIEW: Action.VIEW_ALTER}
"""The action that a caller needs to report lineage into an object of each kind."""
CHANGE: Final = "change"
SEE: Final = "see"
LineageKey = tuple[str, str]
LineageEnd = int | ExternalDataset
"""One end of an edge: an object's id, or an external dataset."""


class RejectedDataset(NamedTuple):
    """A dataset of an event whose edges were not stored, and the reason."""

    dataset: LineageKey
    why: str


class LineageResult(NamedTuple):
    """The result of an intake: the count of stored edges, and the rejected datasets."""

    stored_count: int
    left_out: tuple[RejectedDataset, ...]


class ColumnPairDraft(NamedTuple):
    """An edge between two columns whose external dataset has no id yet."""

    source: LineageEnd
    target_field: LineageField
    source_field: LineageField
    subtype: str
    direct: bool


class LineagePut(msgspec.Struct, frozen=True):
    """The lineage of one target that a job reported, for the command `LineagePuts`."""

    target: LineageEnd
    job: LineageJobRow
    sources: tuple[LineageEnd, ...]
    pairs: tuple[ColumnPairDraft, ...]


class LineagePuts(msgspec.Struct, frozen=True):
    """The command to store lineage of targets in one catalog, and of external targets with sources in that catalog."""

    metalake_id: int
    puts: tuple[LineagePut, ...]


class _LineageItem(NamedTuple):
    """One output of an event, and the dataset in whose catalog the report is authorized: the output, or a source of an
    external output.
    """

    event: EventLineage
    output: EventOutput
    target: ResolvedDataset
    sources: tuple[ResolvedDataset, ...]
    anchor: ResolvedDataset


class _NoAllowedEdges(Exception):
    """Raised if no reported edge may be stored."""


async def home_find(ctx: Context, metalake: str) -> UsableCatalogs:
    """Return a metalake's id and the catalogs the caller may use. Raises NotFound, PermissionDenied, NotInUse."""
    return await ctx.read(RequestScope(metalake), usable_catalogs_of)


async def lineage_take(
    ctx: Context, *, metalake: str, home: UsableCatalogs, events: Sequence[EventLineage], authority: str
) -> LineageResult:
    """Store the part of the reported lineage that the caller may report, in one transaction for each catalog.

    Args:
        ctx: The request.
        metalake: The name of the metalake.
        home: The metalake's id, and its catalogs that the caller may use.
        events: The events' lineage.
        authority: The host and port by which the caller reached this server: a catalog with that authority in its URL
            is this server's.

    Returns:
        The count of stored edges, and the rejected datasets.

    Raises:
        PermissionDenied: The caller may change none of the targets.
        ServiceUnavailable: Concurrent moves of objects made every attempt fail.
    """
    if not events:
        return LineageResult(0, ())
    event_datasets = [
        each for event in events for each in (*event.sources, *(output.dataset for output in event.outputs))
    ]
    linked = {link.source for event in events for output in event.outputs for link in output.links}
    linked |= {output.dataset.key for event in events for output in event.outputs if output.links}
    datasets = await datasets_find(
        ctx, metalake, home=home, datasets=event_datasets, authority=authority, linked=linked
    )
    desk = _LineageIntake(home.metalake_id, datasets, now_ms=ctx.services.store.time.now_ms())
    count = 0
    for catalog, items in desk.sort(events).items():
        try:
            count += await ctx.write(RequestScope(metalake, catalog), partial(desk.decide, items=items), lineage_put)
        except (_NoAllowedEdges, NotFound, NotInUse):
            desk.refused = items
        for item in desk.refused:
            desk.leave_out(item.anchor, CHANGE if item.anchor is item.target else SEE)
    desk.refuse_whole(events)
    return LineageResult(count, tuple(desk.left_out))


class _LineageIntake:
    """The processing of one request's events: it groups the edges by catalog, authorizes them, and collects rejected
    datasets.
    """

    def __init__(self, metalake_id: int, datasets: Mapping[LineageKey, ResolvedDataset], *, now_ms: int) -> None:
        self.metalake_id = metalake_id
        self.now_ms = now_ms
        self.datasets = datasets
        self.left_out: dict[RejectedDataset, None] = {}
        self.refused: Sequence[_LineageItem] = ()
        """The items that the last decision refused."""
        self._fields: dict[LineageKey, FieldNames] = {}

    def sort(self, lineages: Sequence[EventLineage]) -> dict[str, list[_LineageItem]]:
        """Group the outputs of events by the catalog in which they are authorized, and reject hidden datasets."""
        sorted_: dict[str, list[_LineageItem]] = {}
        for event in lineages:
            for output in event.outputs:
                item = self._item(event, output)
                if item is not None and item.anchor.catalog is not None:
                    sorted_.setdefault(item.anchor.catalog, []).append(item)
        return sorted_

    def _item(self, event: EventLineage, output: EventOutput) -> _LineageItem | None:
        target = self.datasets[output.dataset.key]
        source_datasets = [self.datasets[each.key] for each in event.sources]
        if all(each.node_id is None and not each.is_hidden for each in (target, *source_datasets)):
            for each in (target, *source_datasets):
                self.left_out[RejectedDataset(each.dataset.key, _unknown_reason(each.dataset))] = None
            return None
        source_datasets = [each for each in source_datasets if each.node_id is None or each.node_id != target.node_id]
        for each in (target, *source_datasets):
            if each.is_hidden:
                self.leave_out(each, CHANGE if each is target else SEE)
        sources = tuple([each for each in source_datasets if not each.is_hidden])
        anchor = target if target.node_id is not None else next((each for each in sources if each.node_id), None)
        if target.is_hidden or anchor is None or not sources:
            return None  # an end is hidden, or the target is made of itself alone
        return _LineageItem(event=event, output=output, target=target, sources=sources, anchor=anchor)

    def leave_out(self, dataset: ResolvedDataset, verb: str) -> None:
        """Add a dataset to the rejected datasets. `verb` names the missing right in the reason."""
        self.left_out[
            RejectedDataset(dataset.dataset.key, f"no table or view that you may {verb} has this name or location")
        ] = None

    def refuse_whole(self, lineages: Sequence[EventLineage]) -> None:
        """Raise PermissionDenied if the caller may change none of the request's targets."""
        targets = {output.dataset.key for event in lineages for output in event.outputs}
        refused_items = [each for each in self.left_out if each.dataset in targets and f" {CHANGE} " in each.why]
        if len(refused_items) == len(targets):
            name = display_name(refused_items[0].dataset)
            raise PermissionDenied(
                f"You may not report lineage of {name}: {refused_items[0].why}. That needs MODIFY_TABLE on the table,"
                " or its ownership"
            )

    def decide(self, request_view: RequestView, *, items: Sequence[_LineageItem]) -> Permit[LineagePuts]:
        """Authorize the items on the current request view of their catalog. Returns the permit to store the allowed
        items.

        Raises _NoAllowedEdges if none is allowed.
        """
        request_view.require_in_use()
        require_nodes_cached(
            request_view,
            {each.node_id for item in items for each in self._objects_in_catalog(request_view, item) if each.node_id},
        )
        entries = list(zip(items, for_each(items, lambda item: self._item_decisions(request_view, item)), strict=True))
        self.refused = [item for item, decisions in entries if decisions is None]
        allowed_items = [(item, results) for item, results in entries if results is not None]
        if not allowed_items:
            raise _NoAllowedEdges
        command = LineagePuts(self.metalake_id, tuple([self._put(item) for item, _ in allowed_items]))
        return request_view.permit(command, *[decision for _, result in allowed_items for decision in result])

    @staticmethod
    def _objects_in_catalog(request_view: RequestView, item: _LineageItem) -> list[ResolvedDataset]:
        return [each for each in (item.target, *item.sources) if each.catalog_id == request_view.catalog.id]

    def _item_decisions(self, request_view: RequestView, item: _LineageItem) -> list[Decision] | None:
        """Return the decisions on the item's objects in this catalog; None if one of them denies."""
        decisions = []
        here = self._objects_in_catalog(request_view, item)
        for each in here:
            chain = chain_of(request_view, each.node_id or 0)
            if chain is None or (each is item.target and chain[0].kind not in CHANGES):
                return None
            action = CHANGES[chain[0].kind] if each is item.target else Action.METADATA_LOAD
            decisions.append(request_view.decide(action, chain))
        return decisions if item.anchor in here and all(each.allowed for each in decisions) else None

    def _put(self, item: _LineageItem) -> LineagePut:
        event = item.event
        ends = {each.dataset.key: _end(each) for each in item.sources}
        links = [link for link in item.output.links if link.source in ends]
        pairs = tuple([self._draft(link, item.output.dataset, source=ends[link.source]) for link in links])
        at = min(event.at, self.now_ms)  # a future time would outrank all later reports
        job = LineageJobRow(namespace=event.job[0], name=event.job[1], run=event.run, parent=event.parent, at=at)
        return LineagePut(_end(item.target), job, tuple(dict.fromkeys(ends.values())), pairs)

    def _draft(self, link: ColumnLink, target: EventDataset, *, source: LineageEnd) -> ColumnPairDraft:
        aimed = LineageField(EVERY_FIELD, "") if link.target is None else self._field(target.key, link.target)
        return ColumnPairDraft(
            source=source,
            target_field=aimed,
            source_field=self._field(link.source, link.source_field),
            subtype=link.subtype,
            direct=link.direct,
        )

    def _field(self, key: LineageKey, name: str) -> LineageField:
        """Return the key of a column: its field id, if the dataset's document has one, and its name in the event."""
        dataset = self.datasets[key]
        cached_field = self._fields.get(key)
        if cached_field is None:
            cached_field = self._fields[key] = NOTHING if dataset.body is None else field_names(dataset.body)
        field_id = cached_field.id_of(name, snapshot=dataset.dataset.snapshot)
        return LineageField(UNKNOWN_FIELD if field_id is None else field_id, name)


def display_name(key: LineageKey) -> str:
    """Return a dataset's namespace and name as a string of limited length, for a message."""
    return f"{key[0]} {key[1]}"[:300]


def _unknown_reason(dataset: EventDataset) -> str:
    """Return why a dataset of an event without any object of this server is not stored."""
    return (
        "neither end is a table or view of this metalake: if it is one, give the metalake the property "
        f"{PREFIX}{dataset.namespace} = NAME=CATALOG, where NAME is what names in that namespace begin with"
    )


def _end(dataset: ResolvedDataset) -> LineageEnd:
    return ExternalDataset(*dataset.outside) if dataset.node_id is None else dataset.node_id


def lineage_put(tx: Tx, permit: Permit[LineagePuts]) -> int:
    """Write the edges, except edges of objects that no longer exist. Returns the count of edges written. Deletes the
    oldest edges from an object to external datasets beyond a limit.
    """
    metalake_id = permit.command.metalake_id
    return sum(_put_one(tx, put, metalake_id=metalake_id) for put in permit.command.puts)


def _put_one(tx: Tx, put: LineagePut, *, metalake_id: int) -> int:
    def id_of(end: LineageEnd) -> int:
        return end if isinstance(end, int) else tx.lineage.external_dataset_id(metalake_id, end)

    def is_there(end: LineageEnd) -> bool:
        return not isinstance(end, int) or tx.nodes.is_alive(end)

    ids = {end: id_of(end) for end in put.sources if is_there(end)}
    if not ids or not is_there(put.target):
        return 0
    pairs = [
        LineagePair(
            source_id=ids[each.source],
            target=each.target_field,
            source=each.source_field,
            subtype=each.subtype,
            direct=each.direct,
        )
        for each in put.pairs
        if each.source in ids
    ]
    count = tx.lineage.put(id_of(put.target), put.job, sources=set(ids.values()), pairs=pairs)
    if not isinstance(put.target, int):
        for source_id in sorted(end for end in ids if isinstance(end, int)):
            tx.lineage.trim_exports(source_id)
    return count
