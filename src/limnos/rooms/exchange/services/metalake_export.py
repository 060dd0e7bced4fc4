# SPDX-License-Identifier: Apache-2.0
"""Metalake export: a snapshot of all live objects of a metalake, as records in which every reference points to an
earlier record.

Must not know any wire format but the export's. Only one page is in memory at a time. The records are read in a separate
read transaction, without the caches. Decision record 0080.
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from limnos import __version__
from limnos.access.actions import Action
from limnos.model.entities import Node
from limnos.model.errors import NotFound, PermissionDenied, ServiceUnavailable
from limnos.model.privileges import Privilege
from limnos.model.proto.limnos.v1.export_pb2 import ExportRecord
from limnos.model.records import CatalogRecord
from limnos.rooms.exchange.formats import messages
from limnos.rooms.exchange.formats.encoding import Form, encode_records
from limnos.services.request.catalog_properties import is_secret, mask_passwords
from limnos.services.request.catalog_storage import PROVIDERS_WITH_WAREHOUSE, warehouse_of
from limnos.services.request.context import Context
from limnos.services.request.defaults import RequestDefaults
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.exchange import exports
from limnos.store.identity.principals import principal_of
from limnos.store.identity.restrictions import restriction_of
from limnos.store.snapshots import StoreSnapshot
from limnos.store.sql import Row, Sql

IDS_AT_ONCE: Final = 10_000
NODES_AT_ONCE: Final = 100
CONTAINERS_AT_ONCE: Final = 100
"""The maximum number of nodes whose rows and documents are in memory at once."""
ROWS_AT_ONCE: Final = 1000
AT_ONCE_MAX: Final = 2
"""The maximum number of exports on one node: each keeps a read transaction open."""
AGE_MAX_S: Final = 3600.0
"""The time after which an export ends, in seconds, also while its client reads slowly: until then SQLite's write-ahead
log grows, and PostgreSQL keeps old rows.
"""


@dataclass(slots=True)
class ExportCounter:
    """The count of exports in progress on this node, which is limited."""

    count: int = 0


_EXPORT_COUNTER = ExportCounter()


def _decide(request_view: RequestView, *, secrets: bool) -> int:
    """Authorize the export of the metalake. Returns its id. Raises PermissionDenied, NotFound."""
    request_view.require(Action.METALAKE_EXPORT, request_view.settled.outer)
    if secrets:
        if not request_view.rules.access_enabled:
            raise PermissionDenied("Access control is off: secrets are only exported while access control is on")
        request_view.require(Action.SECRETS_EXPORT, ())
    return request_view.metalake.id


async def metalake_export(
    ctx: Context, *, metalake: str, form: Form, secrets: bool = False
) -> AsyncGenerator[bytes, None]:
    """Yield an export in chunks; with `secrets`, secret properties are included. Raises NotFound, PermissionDenied, and
    ServiceUnavailable (too many exports) before the first chunk.

    Raises ServiceUnavailable instead of a chunk after `AGE_MAX_S`. Its transaction has ended then, although the
    consumer may not have asked for that chunk yet.
    """
    export = _export(ctx, metalake=metalake, form=form, secrets=secrets)
    age = _AgeLimit(export)
    try:
        while not age.is_over:
            try:
                chunk = await anext(export)
            except StopAsyncIteration:
                return
            if not age.is_over:
                yield chunk
        raise ServiceUnavailable(
            f"The export took longer than {AGE_MAX_S:g} s, and nothing was changed: begin it again, and read it faster"
        )
    finally:
        await age.close()


class _AgeLimit:
    """Ends a generator `AGE_MAX_S` after it was made, also if nobody asks for its next item."""

    def __init__(self, source: AsyncGenerator[bytes, None]) -> None:
        self.is_over = False
        self._source = source
        self._timer = asyncio.create_task(self._wait())

    async def _wait(self) -> None:
        await asyncio.sleep(AGE_MAX_S)
        self.is_over = True
        with suppress(RuntimeError):  # it makes its next item: whoever asked for it ends it
            await self._source.aclose()

    async def close(self) -> None:
        """End the generator, unless it has ended."""
        if not self.is_over:
            self._timer.cancel()
        await asyncio.wait([self._timer])
        await self._source.aclose()


async def _export(ctx: Context, *, metalake: str, form: Form, secrets: bool) -> AsyncGenerator[bytes, None]:
    """Yield an export in chunks.

    The decision is repeated after the read transaction has begun, in case the caller's right was revoked concurrently.
    """
    decide = partial(_decide, secrets=secrets)
    await ctx.read(RequestScope(metalake), decide)
    if _EXPORT_COUNTER.count >= AT_ONCE_MAX:
        raise ServiceUnavailable(f"{AT_ONCE_MAX} exports are in progress on this node: try again when one has ended")
    _EXPORT_COUNTER.count += 1
    try:
        async with ctx.services.store.snapshot() as moment:
            metalake_id = await ctx.read(RequestScope(metalake), decide)
            export = _MetalakeExport(moment, metalake_id, defaults=ctx.services.defaults, secrets=secrets)
            count = 0
            async for page in export.pages(now_ms=ctx.services.store.time.now_ms()):
                result, data = await asyncio.to_thread(_page, page, form)
                count += result
                yield data
            yield encode_records([messages.trailer(count)], form)
    finally:
        _EXPORT_COUNTER.count -= 1


def _page(page: Callable[[], list[ExportRecord]], form: Form) -> tuple[int, bytes]:
    """Build a page's records and encode them. Returns their count and bytes. Runs in a thread, because records may be
    large.
    """
    records = page()
    return len(records), encode_records(records, form)


def _ascending_runs(ids: Sequence[int]) -> Iterator[list[int]]:
    """Yield ids in runs of at most `CONTAINERS_AT_ONCE`, each ascending: a statement returns objects by the id of their
    container, and so in the order of the containers. An import keeps that order, and its export equals the first one.
    """
    run: list[int] = []
    for each in ids:
        if run and (each < run[-1] or len(run) == CONTAINERS_AT_ONCE):
            yield run
            run = []
        run.append(each)
    if run:
        yield run


class _MetalakeExport:
    """One export, as a sequence of pages; each page is a function that returns its records."""

    def __init__(self, moment: StoreSnapshot, metalake_id: int, *, defaults: RequestDefaults, secrets: bool) -> None:
        self._moment = moment
        self._metalake_id = metalake_id
        self._warehouse = defaults.warehouse
        self._keys = defaults.storages.keys
        self._secrets = secrets
        self._params = {"metalake": metalake_id}

    async def pages(self, *, now_ms: int) -> AsyncGenerator[Callable[[], list[ExportRecord]], None]:
        """Yield all pages: header, metalake, principals, the tree from its root, then attachments, roles and links."""
        node, owner_id = await self._metalake()
        ((epoch, server, own),) = await self._moment.rows((exports.REVISIONS, self._params))
        head = messages.header(
            metalake=node.name, product=__version__, now_ms=now_ms, epoch=epoch, revisions=(server, own)
        )
        yield lambda: [head, messages.metalake(node, owner_id=owner_id)]
        async for page in self._rows(exports.PRINCIPALS, lambda row: messages.principal(principal_of(row))):
            yield page
        async for page in self._tree():
            yield page
        async for page in self._attachment_pages():
            yield page

    async def _metalake(self) -> tuple[Node, int | None]:
        rows = await self._moment.rows(exports.nodes_query([self._metalake_id]))
        if not rows:
            raise NotFound("The metalake was dropped just now", kind="metalake")
        node = exports.export_node_of(rows[0])
        return node.node, node.owner_id

    async def _tree(self) -> AsyncGenerator[Callable[[], list[ExportRecord]], None]:
        """Yield the pages of nodes: first the containers, each after the one above it, then the objects in them.

        Ids are read in parts: a statement that sorted those of a large lake would take longer than a client waits.
        """
        containers = array("q")
        async for ids in self._moment.pages((exports.CONTAINERS, self._params), IDS_AT_ONCE):
            containers.extend(row[0] for row in ids)
            async for page in self._node_pages([row[0] for row in ids]):
                yield page
        waiting: list[int] = []
        for some in _ascending_runs(containers):
            query = exports.contained_query(some)
            async for ids in self._moment.pages(query, IDS_AT_ONCE):
                waiting += [row[0] for row in ids]
                full_count = len(waiting) // NODES_AT_ONCE * NODES_AT_ONCE
                async for page in self._node_pages(waiting[:full_count]):
                    yield page
                del waiting[:full_count]
        async for page in self._node_pages(waiting):
            yield page

    async def _node_pages(self, ids: Sequence[int]) -> AsyncGenerator[Callable[[], list[ExportRecord]], None]:
        for start in range(0, len(ids), NODES_AT_ONCE):
            some = ids[start : start + NODES_AT_ONCE]
            yield partial(self._nodes, some, await self._moment.rows(exports.nodes_query(some)))

    def _nodes(self, ids: Sequence[int], rows: Iterable[Row]) -> list[ExportRecord]:
        by_id = {row[0]: row for row in rows}
        return [self._node(exports.export_node_of(by_id[node_id])) for node_id in ids]

    def _node(self, node: exports.ExportNode) -> ExportRecord:
        record = node.node.record
        if isinstance(record, CatalogRecord):
            entries, masked = self._without_secrets(record)
            own_location = f"{self._warehouse}/{node.node.id}"
            warehouse = warehouse_of(record, own_location) if record.provider in PROVIDERS_WITH_WAREHOUSE else ""
            export_record = messages.catalog(
                node.node, properties=entries, masked=masked, warehouse=mask_passwords(warehouse)
            )
        else:
            export_record = messages.node_record(node.node, node.document)
        export_record.owner_id = node.owner_id or 0
        return export_record

    def _without_secrets(self, record: CatalogRecord) -> tuple[dict[str, str], list[str]]:
        """Return a catalog's properties without secret properties, and the names of the secret properties. An export
        with secrets has all properties, decrypted, and no such names.
        """
        if self._secrets:
            return self._keys.open_properties(record.properties), []
        masked = [key for key, value in record.properties.items() if is_secret(key) or mask_passwords(value) != value]
        return {key: value for key, value in record.properties.items() if key not in masked}, sorted(masked)

    async def _attachment_pages(self) -> AsyncGenerator[Callable[[], list[ExportRecord]], None]:
        """Yield versions, tags, statistics and other attachments of objects, roles, and the links between objects."""
        async for rows in self._moment.pages((exports.MODEL_VERSIONS, self._params), NODES_AT_ONCE):
            versions = await exports.model_versions_of(self._moment, rows)
            yield partial(_each, versions, lambda result: messages.model_version(*result))
        async for rows in self._moment.pages((exports.TAGGED, self._params), ROWS_AT_ONCE):
            yield partial(_tag_record, rows, await exports.tag_values_of(self._moment, rows))
        plain: tuple[tuple[Sql, Callable[[Row], ExportRecord]], ...] = (
            (exports.LANCE_VERSIONS, lambda row: messages.lance_version(*exports.lance_version_of(row))),
            (exports.DECLARATIONS, messages.declaration),
            (exports.USES, lambda row: messages.link("uses", from_id=row[0], to_id=row[1])),
            (exports.MEMBERS, lambda row: messages.link("member", from_id=row[0], to_id=row[1])),
            (exports.POLICED, lambda row: messages.attachment_record("policed", row)),
            (exports.STATISTICS, lambda row: messages.statistic(row[0], exports.statistic_of(row[1:]))),
            (
                exports.COLUMN_STATISTICS,
                lambda row: messages.statistic(row[0], exports.statistic_of(row[2:]), field_id=row[1]),
            ),
            (
                exports.PROTECTED,
                lambda row: messages.protection_record(row[0], below=bool(row[1]), set_by=row[2], set_at=row[3]),
            ),
            (exports.ROLES, _role),
            (exports.RESTRICTIONS, lambda row: messages.restriction(restriction_of(row))),
            (
                exports.GRANTS,
                lambda row: messages.grant(row[0], row[1], privilege=Privilege(row[2]).word, allowed=bool(row[3])),
            ),
            (exports.HOLDERS, lambda row: messages.link("holder", from_id=row[0], to_id=row[1])),
        )
        for statement, make in plain:
            async for page in self._rows(statement, make):
                yield page

    async def _rows(
        self, statement: Sql, make: Callable[[Row], ExportRecord]
    ) -> AsyncGenerator[Callable[[], list[ExportRecord]], None]:
        async for rows in self._moment.pages((statement, self._params), ROWS_AT_ONCE):
            yield partial(_each, rows, make)


def _tag_record(rows: Sequence[Row], values: dict[tuple[int, int, int], list[str]]) -> list[ExportRecord]:
    return [messages.attachment_record("tagged", row, values=values.get((row[0], row[1], row[2]), ())) for row in rows]


def _each(rows: Sequence[Row], make: Callable[[Row], ExportRecord]) -> list[ExportRecord]:
    return [make(row) for row in rows]


def _role(row: Row) -> ExportRecord:
    audit = messages.audit((row[4], row[5]), (row[6], row[7]))
    return messages.role(row[0], row[2], record=bytes(row[3]), audit_info=audit, owner_id=row[8])
