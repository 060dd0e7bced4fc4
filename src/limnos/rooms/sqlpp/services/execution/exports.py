# SPDX-License-Identifier: Apache-2.0
"""COPY TO: an engine writes the results of a query to files, at a location where the caller may write.

Must not know any wire format. The query runs with the caller's rights, as every query does. Files go below a directory
of the setting `sqlpp.export_roots`, or into a fileset that the caller may change.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterable
from contextlib import aclosing
from typing import Final, cast

import msgspec

from limnos.access.actions import Action
from limnos.files import is_local, is_within, key_of, leads_within, normalise, refuse_alias
from limnos.model.audit import AuditedDecision, AuditRecord, audit_record, shorten_text
from limnos.model.errors import BadRequest
from limnos.model.kinds import ROOT_ID, Kind
from limnos.model.records import FilesetRecord
from limnos.model.storage_locations import LocationKind
from limnos.names.display import render as display_name
from limnos.names.path import Levels
from limnos.names.sqlpp import identifier
from limnos.rooms.sqlpp.language import SqlppError, parse_body, tree
from limnos.rooms.sqlpp.language.errors import TextPosition
from limnos.rooms.sqlpp.language.exports import ExportFormat, check_type, export_format
from limnos.rooms.sqlpp.language.jobs import text_of
from limnos.rooms.sqlpp.services.definitions.files import closed_directories, local_location
from limnos.rooms.sqlpp.services.definitions.types import inlined_record
from limnos.rooms.sqlpp.services.execution.data_statements import BoundStatement, job_rows, require_data
from limnos.rooms.sqlpp.services.execution.export_files import (
    STORE_FILE_BYTES_MAX,
    ExportFiles,
    ExportTarget,
    check_names,
    export_files_of,
)
from limnos.rooms.sqlpp.services.execution.queries import query_bind
from limnos.rooms.sqlpp.services.requests.errors import invalid_operation
from limnos.rooms.sqlpp.services.requests.names import scope_of
from limnos.rooms.sqlpp.services.requests.running_requests import REQUESTS, StatementEnded
from limnos.rooms.sqlpp.services.requests.session import StatementSession
from limnos.services.request.catalog_storage import catalog_storage_of
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.faults import EXPORT_POINTS, fault_point
from limnos.store.objects.storage_locations import rivals_read

LOCAL, FILESET = "localfs", "fileset"
DEFAULT_LOCATION: Final = "default-location-name"
NO_STRING: Final = 64
TARGET_OPTIONS: Final = ("fileset", "location-name")
_STORES: Final = ("s3", "gcs", "azureblob", "azuredatalake", "hdfs")
RECORDS_MAX: Final = 100
PUBLISH_S: Final = 5.0
"""The maximum time that a cancelled statement waits for the publishing of its files, in seconds."""
EXPORTED: Final = "export"
"""The operation name of an export in audit records."""
FILE_WRITTEN, UNPUBLISHED, PUBLISHED = EXPORT_POINTS


async def files_export(session: StatementSession, statement: tree.CopyTo) -> None:
    """Execute COPY TO: write the results of a query to files. Raises SqlppError, PermissionDenied, NotFound,
    StorageFailed, and StatementEnded if it is cancelled while it publishes the files.
    """
    ctx = session.ctx
    form = await _format(session, statement)
    fixed, computed = _split_path(statement)
    bound_query = await query_bind(session, export_query(session, statement, computed=computed))
    source = require_data(bound_query, statement.at)
    target = await _target(ctx, statement, fixed=fixed)
    if session.compiles_only:
        return
    if not is_local(target.location):
        form = msgspec.structs.replace(
            form, bytes_max=min(form.bytes_max or STORE_FILE_BYTES_MAX, STORE_FILE_BYTES_MAX)
        )
    form = msgspec.structs.replace(form, is_partitioned=bool(computed))
    files = export_files_of(ctx.services.files, target)
    await files.begin()
    try:
        counts = await _write(
            session, BoundStatement(kind="export", source=source, export=form), files=files, target=target
        )
        if (await _target(ctx, statement, fixed=fixed)).location != target.location:
            raise invalid_operation(
                f"{target.about} has another location by now: run the statement again", statement.at
            )
        records = await _records(ctx, target, reads=source.reads, counts=counts)
    except BaseException:
        files.discard()
        raise
    await _finish(ctx, files, has_files=counts[0] > 0, records=records)


async def _finish(ctx: Context, files: ExportFiles, *, has_files: bool, records: list[AuditRecord]) -> None:
    """Publish the files, if there are any, and write the audit records of the export, even if the statement is
    cancelled during that.

    Raises StatementEnded, whose message states whether the files exist, and the errors of `ExportFiles.publish`.
    """

    async def publish() -> None:
        try:
            if has_files:
                fault_point(UNPUBLISHED)
                await files.publish()
                fault_point(PUBLISHED)
        except BaseException:
            files.discard()
            raise
        if not has_files:
            files.discard()
        ctx.services.audit.take(records)

    publishing = REQUESTS.of(ctx.services).run_in_background(publish())
    try:
        await asyncio.shield(publishing)
    except asyncio.CancelledError:
        await asyncio.wait([publishing], timeout=PUBLISH_S)
        if not publishing.done():
            raise StatementEnded("its files may still appear: check its location before you run it again") from None
        if publishing.cancelled() or publishing.exception() is not None:
            raise
        raise StatementEnded("its files had been written before that") from None


async def _format(session: StatementSession, statement: tree.CopyTo) -> ExportFormat:
    """Return the checked export format, with its record type if the statement names one. Raises SqlppError."""
    options = [each for each in statement.options if each.name.lower() not in TARGET_OPTIONS]
    form = export_format(options, statement.formats, has_type=statement.type is not None)
    if statement.type is None:
        return form
    record = await inlined_record(session, statement.type)
    check_type(form.name, record)
    return msgspec.structs.replace(form, type=text_of(record))


def _split_path(statement: tree.CopyTo) -> tuple[list[str], tuple[tree.Expression, ...]]:
    """Split a path into its constant prefix and its remaining parts, which are computed for each object.

    Raises SqlppError for a literal MISSING or NULL that follows the constant prefix.
    """
    fixed: list[str] = []
    for number, part in enumerate(statement.path):
        if isinstance(part, (tree.MissingLiteral, tree.Null)):
            word = "missing" if isinstance(part, tree.MissingLiteral) else "null"
            text = f"Path expression produced a value of type '{word}'. Path must be of type string"
            raise SqlppError(NO_STRING, text, part.at)
        if not isinstance(part, tree.String):
            return fixed, statement.path[number:]
        fixed.append(part.value)
    return fixed, ()


async def _target(ctx: Context, statement: tree.CopyTo, *, fixed: list[str]) -> ExportTarget:
    """Return the target directory of an export, if the caller may write there.

    Raises SqlppError for an unsupported adapter or path, PermissionDenied, NotFound.
    """
    adapter, at = statement.adapter.lower(), statement.at
    options = {each.name.lower(): each.value for each in statement.options}
    if adapter == LOCAL:
        if not fixed:
            raise invalid_operation(f"The path of {LOCAL} must begin with the string of a directory", at)
        text = "/".join([fixed[0].rstrip("/"), *(each.strip("/") for each in fixed[1:])])
        return await _local_target(ctx, text, at=at)
    if adapter in _STORES:
        text = (
            f"COPY TO {adapter} needs a fileset, which has the privileges and the credentials: COPY … TO {FILESET} PATH"
            " (…) WITH "
        )
        raise invalid_operation(f'{text}{{"{FILESET}": "catalog.schema.name", …}}', at)
    if adapter != FILESET:
        raise invalid_operation(f"Unknown adapter: {adapter}; there are {LOCAL} and {FILESET}", at)
    name = options.get(FILESET)
    catalog, *levels = (name or "").split(".")
    if len(levels) < 2 or not name:
        raise invalid_operation(f'The adapter {FILESET} needs the option "{FILESET}": "catalog.schema.name"', at)

    def read(request_view: RequestView) -> ExportTarget:
        request_view.require_in_use()
        node = request_view.look_up(Kind.FILESET, tuple(levels), Action.FILESET_ALTER).entity
        request_view.defaults.location_conflicts.refuse(node.id, what="fileset")
        record, catalog_storage = cast("FilesetRecord", node.record), catalog_storage_of(request_view)
        usual = record.properties.get(DEFAULT_LOCATION) or next(iter(record.locations), "")
        word = options.get("location-name") or usual
        if word not in record.locations:
            raise invalid_operation(f"The fileset {name} has no location {word}", at)
        base = record.locations[word]
        catalog_storage.check(base)
        location = _location_below(base, [part for text in fixed for part in text.split("/") if part])
        if is_local(location):
            if location == normalise(base):  # the staging directory beside it would be outside of the fileset
                raise invalid_operation(
                    "On local disks the path begins with the name of a directory in the fileset", at
                )
            refuse_alias(base, catalog_storage.roots)
            if not leads_within(location, [base], allowed=catalog_storage.allowed):
                raise invalid_operation("The path contains a link to a location outside of the fileset", at)
        return ExportTarget(location, catalog_storage.catalog.properties, catalog_storage.roots, f"fileset {name}")

    return await ctx.read(RequestScope(ctx.services.defaults.metalake, catalog), read)


def _location_below(base: str, names: list[str]) -> str:
    check_names(names, base)
    return normalise("/".join((base, *names)))


async def _local_target(ctx: Context, text: str, *, at: TextPosition) -> ExportTarget:
    """Return a local target directory. Raises SqlppError if it is not below an allowed root, or is the location of an
    object.
    """
    defaults = ctx.services.defaults
    location = local_location(text, at)
    roots, closed_roots = defaults.export_roots, closed_directories(ctx)
    inside = any(is_within(location, [root]) and location != normalise(root) for root in roots)
    try:
        inside = inside and leads_within(location, roots, allowed=defaults.allowed)
    except BadRequest as error:
        raise invalid_operation(error.message, at) from None
    if not inside or is_within(location, closed_roots):
        raise invalid_operation(
            f"{location} is not below a directory that COPY TO may write to: the server's operator can name one"
            " (setting sqlpp.export_roots)",
            at,
        )
    rivals = await ctx.look_up(lambda: rivals_read(key_of(location)))
    if any(each.claim.kind is not LocationKind.ALLOWED_LOCATION for each in rivals):
        raise invalid_operation(f"{location} is at, above or below the location of an object: choose another", at)
    return ExportTarget(location, {}, roots, "")


def export_query(
    session: StatementSession, statement: tree.CopyTo, *, computed: tuple[tree.Expression, ...]
) -> tree.QueryExpression:
    """Return the query for the objects to write, in the order of their files.

    If parts of the path are computed, each result is an object with these parts (`path`) and the object to write
    (`of`).
    """
    variable = identifier(statement.variable)
    source = statement.source
    if isinstance(source, tree.DottedName):
        query = _query(
            f"from {'.'.join(map(identifier, session.qualify(source)))} as {variable} select value {variable}"
        )
    else:
        query = _query(f"from [] as {variable} select value {variable}")
        term = msgspec.structs.replace(query.block.terms[0], source=source)
        query = msgspec.structs.replace(query, block=msgspec.structs.replace(query.block, terms=(term,)))
    if not computed and not statement.order:
        return query
    lets = tuple(
        tree.Let(key.at, key.variable or f"$partition{number}", key.value)
        for number, key in enumerate(statement.partition)
    )
    order = tuple(tree.OrderItem(let.at, tree.Variable(let.at, let.name), descending=False, nulls=None) for let in lets)
    select = query.block.select
    if computed:
        value = parse_body(f'{{"path": [], "of": {variable}}}')
        if not isinstance(value, tree.Object):
            raise TypeError("the parsed text is not an object constructor")
        path, item = value.pairs
        array = tree.Array(statement.at, computed)
        value = msgspec.structs.replace(value, pairs=(msgspec.structs.replace(path, value=array), item))
        select = msgspec.structs.replace(select, value=value)
    block = msgspec.structs.replace(query.block, lets=lets, select=select)
    return msgspec.structs.replace(query, block=block, order=(*order, *statement.order))


def _query(text: str) -> tree.QueryExpression:
    query = parse_body(text)
    if not isinstance(query, tree.QueryExpression):
        raise TypeError("the parsed text is not a query")
    return query


async def _write(
    session: StatementSession, work: BoundStatement, *, files: ExportFiles, target: ExportTarget
) -> tuple[int, int]:
    """Write the files that the engine produces; returns the counts of files and of objects.

    Raises SqlppError for a computed part of the path that is not a directory name.
    """
    count = objects = 0
    ending = "" if work.export is None else work.export.ending
    async with aclosing(job_rows(session, work)) as rows:
        async for row in rows:
            line = json.loads(row)
            if "bytes" in line:
                await files.write(base64.b64decode(line["bytes"]))
            elif "begin" in line:
                check_names(line["begin"], target.location)
                await files.open([*line["begin"], f"part-{count:05}{ending}"])
                count += 1
            else:
                await files.close()
                fault_point(FILE_WRITTEN)
                objects += int(line["end"])
    return count, objects


async def _records(
    ctx: Context, target: ExportTarget, *, reads: Iterable[tuple[Levels, str]], counts: tuple[int, int]
) -> list[AuditRecord]:
    """Return the audit records of an export: one for each dataset that it read, and one for each allowed decision of
    its request, at most RECORDS_MAX. Empty if changes are not audited.
    """
    audit, audited_request = ctx.services.audit, ctx.audited_request
    if not audit.rules.changes or audited_request is None:
        return []
    user, metalake_id = await ctx.read(
        scope_of(ctx), lambda request_view: (request_view.user, request_view.metalake.id)
    )
    decided = {(each.action, each.target_id): each for each in audited_request.decided or () if each.allowed}
    catalog = ctx.services.defaults.sqlpp_catalog
    datasets = [
        AuditedDecision(action="", object_id=ROOT_ID, kind=Kind.TABLE.word, name=display_name((catalog, *where, name)))
        for where, name in reads
    ]
    rights = [*datasets, *(AuditedDecision.of(each) for each in decided.values())]
    detail = shorten_text(f"COPY TO {target.location}: {counts[0]} files, {counts[1]} objects {target.about}".strip())
    origin, now_ms = audited_request.origin(), audit.store.time.now_ms()
    return [
        audit_record(
            right,
            origin=origin,
            rights=(right,) if right.action else (),
            metalake_id=metalake_id,
            at=now_ms,
            user=user,
            user_id=audited_request.user_id,
            change=EXPORTED,
            detail=detail,
            request_id=ctx.request_id,
            status=200,
        )
        for right in rights[:RECORDS_MAX]
    ]
