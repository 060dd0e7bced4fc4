# SPDX-License-Identifier: Apache-2.0
"""Rows of system tables, from one snapshot: reads a range of ids page by page, and builds the rows that the caller may
see.

Must not know wire formats. A page's rows are built by a plain function, which may run in a thread.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from functools import partial
from json import dumps
from typing import Final, NamedTuple

from limnos.formats.iceberg.schema_columns import NO_TOTALS, document_facts, facts_with_totals, schema_columns
from limnos.formats.system_tables import Cells, RowRequest
from limnos.model.kinds import KINDS, Kind
from limnos.model.privileges import Privilege
from limnos.model.records import NODE_RECORDS, CatalogRecord
from limnos.names import display
from limnos.rooms.exchange.services.part_reads import ROWS_AT_ONCE, IdRange, PartReads
from limnos.rooms.exchange.services.table_access import SnapshotObject, TableAccess
from limnos.services.request.catalog_properties import is_secret, mask_passwords
from limnos.store.exchange import exports
from limnos.store.exchange import system_tables as statements
from limnos.store.sql import Params, Row, Sql, Value

DOCUMENTS_AT_ONCE: Final = 50
"""The maximum number of metadata documents that one statement reads."""
DOCUMENT_BYTES_AT_ONCE: Final = 1 << 20
"""The size of metadata documents, in bytes, after which a page ends."""
PageRows = Callable[[], list[Cells]]
"""Builds the rows of a page."""
Pages = AsyncGenerator[PageRows, None]
_REST: Final[Mapping[str, Value]] = {"second": -1, "third": -1}
_PRIVILEGES: Final = {int(privilege): privilege.name for privilege in Privilege}
_TOTALS: Final = frozenset({"row_count", "byte_count"})
_IN_BODY: Final = frozenset({"changed_at", "snapshot_id", "comment", "properties"}) | _TOTALS
"""The columns of the table `tables` that a document's body has."""
_OF_NODES: Final = frozenset({"id", "kind", "path", "format", "restricted"})
"""The columns of the table `tables` that need no document."""
_BODY: Final = 5
"""The position of the body in a row of a document."""
_WITH_DOCUMENTS: Final = frozenset({Kind.TABLE, Kind.VIEW})


class _PageNode(NamedTuple):
    target: SnapshotObject
    row: Row


class TableRows:
    """The rows of one request: a part of a table."""

    def __init__(self, access: TableAccess, request: RowRequest, *, part: IdRange) -> None:
        self._access, self._request, self._held = access, request, access.snapshot
        self._reads = PartReads(access, request, part=part)
        self._wanted = request.wanted
        kinds = request.equal_to("kind")
        self._kinds = None if kinds is None else frozenset(kind for kind in Kind if kind.word in kinds)

    def pages(self) -> Pages:
        """Return the pages of the requested table."""
        readers: Mapping[str, Callable[[], Pages]] = {
            "nodes": self._nodes,
            "tables": self._tables,
            "columns": self._columns,
            "tags": partial(self._attachments, statements.TAGGED, Kind.TAG),
            "policies": partial(self._attachments, statements.POLICED, Kind.POLICY),
            "owners": self._owners,
            "principals": self._principals,
            "memberships": self._memberships,
            "grants": self._grants,
        }
        return readers[self._request.table.name]()

    # -- nodes ------------------------------------------------------------------------------------------------

    async def node_pages(self) -> AsyncGenerator[list[_PageNode], None]:
        """Yield the live nodes of the range with their ancestors, without decisions on them."""
        async for rows in self._reads.by_id(statements.NODES):
            selected_rows = rows if self._kinds is None else [row for row in rows if KINDS[row[3]] in self._kinds]
            objects = await self._access.resolve(
                [(row[0], row[2], KINDS[row[3]], row[5], row[14]) for row in selected_rows]
            )
            yield [_PageNode(objects[row[0]], row) for row in selected_rows if row[0] in objects]

    async def _nodes(self) -> Pages:
        async for page in self.node_pages():
            yield partial(self._node_rows, page)

    def _node_rows(self, page: list[_PageNode]) -> list[Cells]:
        with_record = not self._wanted.isdisjoint(("comment", "properties"))
        is_visible = self._access.is_visible
        return [_node_cells(each, with_record=with_record) for each in page if is_visible(each.target)]

    # -- documents --------------------------------------------------------------------------------------------

    async def _documents(
        self, statement: Sql | None, *, at_once: int = DOCUMENTS_AT_ONCE
    ) -> AsyncGenerator[list[tuple[_PageNode, Row]], None]:
        """Yield visible tables and views with the rows of their documents, `at_once` from a statement. One without a
        document has an empty row; without a statement, all of them have.
        """
        async for page in self.node_pages():
            visible = [
                each
                for each in page
                if each.target.chain[0].kind in _WITH_DOCUMENTS and self._access.is_visible(each.target)
            ]
            if statement is None:
                yield [(each, ()) for each in visible]
                continue
            some: list[tuple[_PageNode, Row]] = []
            size = 0
            for start in range(0, len(visible), at_once):
                read = visible[start : start + at_once]
                ids = dumps([each.row[0] for each in read])
                rows = {row[0]: row for row in await self._held.rows((statement, {"ids": ids}))}
                some += [(each, rows.get(each.row[0], ())) for each in read]
                size += sum(len(row[_BODY]) for row in rows.values() if len(row) > _BODY)
                if size >= DOCUMENT_BYTES_AT_ONCE:
                    yield some
                    some, size = [], 0
            if some:
                yield some

    async def _tables(self) -> Pages:
        if not self._wanted.isdisjoint(_IN_BODY):
            pages = self._documents(statements.DOCUMENTS)
        elif self._wanted <= _OF_NODES:
            pages = self._documents(None)
        else:
            pages = self._documents(statements.PLACES, at_once=ROWS_AT_ONCE)
        async for page in pages:
            yield partial(self._table_rows, page)

    def _table_rows(self, page: list[tuple[_PageNode, Row]]) -> list[Cells]:
        has_totals = not self._wanted.isdisjoint(_TOTALS)
        is_restricted = self._access.is_restricted
        return [
            _table_cells(each, row, is_restricted=is_restricted(each.target), has_totals=has_totals)
            for each, row in page
        ]

    async def _columns(self) -> Pages:
        async for page in self._documents(statements.DOCUMENTS):
            yield partial(_column_rows, page)

    # -- attachments and owners -------------------------------------------------------------------------------

    async def _attachments(self, statement: Sql, kind: Kind) -> Pages:
        async for rows in self._reads.by_key(statement, _REST):
            objects = await self._access.objects({row[0] for row in rows})
            values: dict[tuple[int, int, int], list[str]] = {}
            if kind is Kind.TAG and "tag_values" in self._wanted and rows:
                values = await exports.tag_values_of(self._held, rows)
            yield partial(self._attachment_rows, rows, kind=kind, objects=objects, values=values)

    def _attachment_rows(
        self,
        rows: list[Row],
        *,
        kind: Kind,
        objects: Mapping[int, SnapshotObject],
        values: Mapping[tuple[int, int, int], list[str]],
    ) -> list[Cells]:
        results: list[Cells] = []
        for row in rows:
            target = objects.get(row[0])
            if target is None or not self._access.is_visible(target):
                continue
            object_id, field_id, attached_id, name, owner_id = row
            if self._access.may_load(kind, attached_id, name=name, owner_id=owner_id):
                cells = (*_object_cells(target), field_id or None, name)
                some = values.get((object_id, attached_id, field_id), ())
                results.append((*cells, some) if kind is Kind.TAG else cells)
        return results

    async def _owners(self) -> Pages:
        async for rows in self._reads.by_id(statements.OWNERS):
            ids = {row[0] for row in rows}
            objects = await self._access.objects(ids)
            roles = await self._roles(ids - objects.keys())
            yield partial(self._owner_rows, rows, objects=objects, roles=roles)

    async def _roles(self, ids: set[int]) -> dict[int, Row]:
        if not ids:
            return {}
        params: Params = {"ids": dumps(sorted(ids)), "metalake": self._held.metalake_id}
        return {row[0]: row for row in await self._held.rows((statements.ROLES_AMONG, params))}

    def _owner_rows(
        self, rows: list[Row], *, objects: Mapping[int, SnapshotObject], roles: Mapping[int, Row]
    ) -> list[Cells]:
        results: list[Cells] = []
        for object_id, owner, owner_kind in rows:
            role = roles.get(object_id)
            if role is not None and self._access.may_load(Kind.ROLE, object_id, name=role[1], owner_id=role[2]):
                results.append((object_id, Kind.ROLE.word, role[1], owner, KINDS[owner_kind].word))
            target = objects.get(object_id)
            if target is not None and self._access.is_visible(target):
                results.append((*_object_cells(target), owner, KINDS[owner_kind].word))
        return results

    # -- principals and grants --------------------------------------------------------------------------------

    async def _principals(self) -> Pages:
        async for rows in self._reads.by_id(statements.PRINCIPALS):
            yield partial(self._principal_rows, rows)
        async for rows in self._reads.by_id(statements.ROLES):
            yield partial(self._role_rows, rows)

    def _principal_rows(self, rows: list[Row]) -> list[Cells]:
        return [
            (row[0], KINDS[row[1]].word, row[2], bool(row[3]), *row[4:])
            for row in rows
            if self._access.may_load(KINDS[row[1]], row[0], name=row[2])
        ]

    def _role_rows(self, rows: list[Row]) -> list[Cells]:
        return [
            (row[0], Kind.ROLE.word, row[1], None, *row[2:6])
            for row in rows
            if self._access.may_load(Kind.ROLE, row[0], name=row[1], owner_id=row[6])
        ]

    async def _memberships(self) -> Pages:
        async for rows in self._reads.by_key(statements.MEMBERS, {"second": -1}):
            yield partial(self._member_rows, rows)
        async for rows in self._reads.by_key(statements.HOLDERS, {"second": -1}):
            yield partial(self._holder_rows, rows)

    def _member_rows(self, rows: list[Row]) -> list[Cells]:
        may_load = self._access.may_load
        return [
            (user_id, Kind.USER.word, user, group_id, Kind.GROUP.word, group)
            for user_id, group_id, user, group in rows
            if may_load(Kind.USER, user_id, name=user) and may_load(Kind.GROUP, group_id, name=group)
        ]

    def _holder_rows(self, rows: list[Row]) -> list[Cells]:
        may_load = self._access.may_load
        return [
            (row[0], KINDS[row[2]].word, row[3], row[1], Kind.ROLE.word, row[4])
            for row in rows
            if may_load(KINDS[row[2]], row[0], name=row[3])
            and may_load(Kind.ROLE, row[1], name=row[4], owner_id=row[5])
        ]

    async def _grants(self) -> Pages:
        async for rows in self._reads.by_key(statements.GRANTS, _REST):
            ids = {row[0] for row in rows}
            objects = await self._access.objects(ids)
            roles = await self._roles(ids - objects.keys())
            yield partial(self._grant_rows, rows, objects=objects, roles=roles)

    def _grant_rows(
        self, rows: list[Row], *, objects: Mapping[int, SnapshotObject], roles: Mapping[int, Row]
    ) -> list[Cells]:
        """Return the grants of roles that the caller may load: a role is loaded with its grants, whatever they are
        on.
        """
        results: list[Cells] = []
        for object_id, role_id, privilege, is_allowed, role, owner_id in rows:
            if not self._access.may_load(Kind.ROLE, role_id, name=role, owner_id=owner_id):
                continue
            target, of_role = objects.get(object_id), roles.get(object_id)
            if target is not None:
                cells = _object_cells(target)
            elif of_role is not None:
                cells = (object_id, Kind.ROLE.word, of_role[1])
            else:
                continue
            results.append((*cells, role_id, role, _PRIVILEGES[privilege], bool(is_allowed)))
        return results


def _object_cells(target: SnapshotObject) -> Cells:
    link = target.chain[0]
    return link.id, link.kind.word, display.render(target.path)


def _node_cells(each: _PageNode, *, with_record: bool) -> Cells:
    chain, row = each.target.chain, each.row
    comment, properties = None, None
    if with_record:
        record = NODE_RECORDS[chain[0].kind].read(row[13])
        comment, properties = record.comment, record.properties
        if isinstance(record, CatalogRecord):
            properties = {
                key: value for key, value in properties.items() if not is_secret(key) and mask_passwords(value) == value
            }
    catalog = chain[-2] if len(chain) > 1 and chain[-2].kind is Kind.CATALOG else None
    return (
        *_object_cells(each.target),
        row[2] if len(chain) > 1 else None,
        None if catalog is None else catalog.name,
        row[5],
        row[6] or None,
        bool(row[7]),
        *row[8:13],
        comment,
        None if properties is None else list(properties.items()),
    )


def _table_cells(each: _PageNode, row: Row, *, is_restricted: bool, has_totals: bool) -> Cells:
    start = (*_object_cells(each.target), each.row[6] or None, is_restricted)
    if not row:
        return (*start, *([None] * 10))
    _, version, uuid, location, metadata_location, *body = row
    facts, totals = None, NO_TOTALS
    if body:
        data = bytes(body[0])
        facts, totals = facts_with_totals(data) if has_totals else (document_facts(data), NO_TOTALS)
    changed_at, snapshot_id = (None, None) if facts is None else (facts.changed_at, facts.snapshot_id)
    if is_restricted:
        return (*start, None, None, version, uuid, changed_at, *([None] * 5))
    comment = None if facts is None else facts.comment
    properties = None if facts is None else list(facts.properties.items())
    document = (location, metadata_location, version, uuid, changed_at, snapshot_id, comment, properties)
    return (*start, *document, totals.rows, totals.bytes)


def _column_rows(page: list[tuple[_PageNode, Row]]) -> list[Cells]:
    results: list[Cells] = []
    for each, row in page:
        if not row:
            continue
        start = _object_cells(each.target)
        for position, column in enumerate(schema_columns(bytes(row[_BODY]))):
            results.append((*start, position, column.id, column.name, column.type, column.required, column.doc))
    return results
