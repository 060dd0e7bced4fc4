# SPDX-License-Identifier: Apache-2.0
"""Another Iceberg REST catalog as a source: its objects as Gravitino's JSON, and Iceberg REST requests forwarded to it.

Must not know callers or rights: the caller has made the access decision and built the request from the authorized
objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from limnos.formats.gravitino import tables, views
from limnos.formats.gravitino.views import GravitinoView, IcebergViewCreate
from limnos.model.errors import BadRequest, CommitConflict, NotFound, SourceFailed, UnsupportedOperation
from limnos.names.path import Levels
from limnos.rooms.connectors.sources.rest_session import RestSession
from limnos.sources.connectors.capabilities import RestCall, RestReply, SourceNames, SourceSchemaInfo, SourceTableInfo
from limnos.sources.connectors.rest_terms import NAMESPACE, NAMESPACES, TABLE, TABLES, VIEW, VIEWS

_NAMES_MAX: Final = 1_000_000
_PAGES_FREE: Final = 100
_NAMES_PER_PAGE: Final = 10
"""A list may have `_PAGES_FREE` pages, and one more for each `_NAMES_PER_PAGE` names. So pages without names end."""
_UNREADABLE: Final = (BadRequest, StopIteration, RecursionError, LookupError, TypeError, ValueError, AttributeError)
"""Errors that parsing malformed metadata may raise."""
_TRIES_MAX: Final = 5
"""The maximum number of times that an alter is rebuilt after a commit conflict."""


class _Namespaces(msgspec.Struct, rename="kebab"):
    namespaces: list[list[str]]
    next_page_token: str | None = None


class _ObjectIdentifier(msgspec.Struct):
    namespace: list[str]
    name: str


class _Identifiers(msgspec.Struct, rename="kebab"):
    identifiers: list[_ObjectIdentifier]
    next_page_token: str | None = None


class _Namespace(msgspec.Struct):
    properties: dict[str, str] | None = None


class _LoadResult(msgspec.Struct):
    metadata: msgspec.Raw


def names_of(call: RestCall, body: bytes) -> SourceNames:
    """Parse a list of namespaces, tables or views.

    Raises SourceFailed for a malformed response, or an object outside of the requested namespace.
    """
    try:
        if call.endpoint == f"GET {NAMESPACES}":
            spaces = msgspec.json.decode(body, type=_Namespaces)
            paths, token = [tuple(each) for each in spaces.namespaces], spaces.next_page_token
        else:
            identifiers = msgspec.json.decode(body, type=_Identifiers)
            paths = [(*each.namespace, each.name) for each in identifiers.identifiers]
            token = identifiers.next_page_token
    except (msgspec.DecodeError, RecursionError) as error:
        raise _unexpected_answer(str(error)) from error
    if any(path[:-1] != call.namespace for path in paths):
        raise _unexpected_answer("a list contains objects of another place")
    return SourceNames([path[-1] for path in paths], token or None)


def _unexpected_answer(detail: str) -> SourceFailed:
    return SourceFailed("The source returned another object than requested: have it checked", detail=detail)


class RestSource:
    """A connector for another Iceberg REST catalog; each method sends the request of the same operation over a
    RestSession. Raises SourceFailed for a malformed response.
    """

    def __init__(self, session: RestSession) -> None:
        self._session = session

    def check(self) -> None:
        """List the top-level namespaces: a response shows that URI, warehouse and token are valid."""
        self.exchange(RestCall(endpoint=f"GET {NAMESPACES}"))

    def close(self) -> None:
        """Close the session's HTTP connections."""
        self._session.close()

    def endpoints(self) -> frozenset[str]:
        """Return the endpoints that the source lists in the response of `/v1/config`."""
        return self._session.endpoints()

    def exchange(self, call: RestCall) -> RestReply:
        """Forward a request. A HEAD request becomes a GET if the source does not list the HEAD endpoint. Raises
        UnsupportedOperation for an endpoint that the source does not list.
        """
        offered = self._session.endpoints()
        if call.endpoint in offered:
            return self._session.send(call)
        loads = call.endpoint.replace("HEAD ", "GET ", 1)
        if loads not in offered:
            raise UnsupportedOperation(f"The source does not serve {call.endpoint}: ask its operator")
        return self._session.send(call._replace(endpoint=loads))

    def names(self, call: RestCall) -> SourceNames:
        """Return one page of names if `call` has `pageToken`; else follow the page tokens and return all names, sorted.
        Raises SourceFailed for more than `_NAMES_MAX` names, a repeated page, and too many pages with few names.
        """
        if any(name == "pageToken" for name, _ in call.query):
            return names_of(call, self.exchange(call).body)
        entries: list[str] = []
        token: str | None = ""
        seen_tokens: set[str] = set()
        while token is not None:
            if token in seen_tokens or len(seen_tokens) > _PAGES_FREE + len(entries) // _NAMES_PER_PAGE:
                raise _unexpected_answer("a list has endless pages")
            seen_tokens.add(token)
            names, token = names_of(call, self.exchange(call._replace(query=(("pageToken", token), *call.query))).body)
            entries += names
            if len(entries) > _NAMES_MAX:
                raise _unexpected_answer(f"more than {_NAMES_MAX} names")
        return SourceNames(sorted(entries), None)

    def _is_there(self, call: RestCall) -> bool:
        try:
            self.exchange(call)
        except NotFound:
            return False
        return True

    # -- schemas ---------------------------------------------------------------------------------------------------

    def schema_names(self, parent: Levels) -> list[str]:
        """List the child namespaces of a namespace by `GET /namespaces`, all pages."""
        return self.names(RestCall(endpoint=f"GET {NAMESPACES}", namespace=parent)).names

    def schema_exists(self, schema: Levels) -> bool:
        """Return whether the source answers `HEAD /namespaces/{namespace}` without NotFound."""
        return self._is_there(RestCall(endpoint=f"HEAD {NAMESPACE}", namespace=schema))

    def schema_load(self, schema: Levels) -> SourceSchemaInfo:
        """Load a namespace by its REST call. Its property `comment` becomes the comment. Raises NotFound."""
        reply = self.exchange(RestCall(endpoint=f"GET {NAMESPACE}", namespace=schema))
        try:
            properties = msgspec.json.decode(reply.body, type=_Namespace).properties or {}
        except (msgspec.DecodeError, RecursionError) as error:
            raise _unexpected_answer(str(error)) from error
        return SourceSchemaInfo(properties.pop(tables.COMMENT, None), properties)

    def schema_create(self, schema: Levels, *, comment: str | None, properties: dict[str, str]) -> None:
        """Create a namespace by `POST /namespaces`, with the comment as a property. Raises AlreadyExists."""
        entries = properties if comment is None else {**properties, tables.COMMENT: comment}
        body = msgspec.json.encode({"namespace": schema, "properties": entries})
        self.exchange(
            RestCall(endpoint=f"POST {NAMESPACES}", namespace=schema, body=body, conflict_meaning="namespace")
        )

    def schema_alter(self, schema: Levels, *, sets: dict[str, str], removes: Sequence[str]) -> None:
        """Set and remove a namespace's properties. Without changes, only checks that the namespace exists."""
        if not sets and not removes:
            self.exchange(RestCall(endpoint=f"HEAD {NAMESPACE}", namespace=schema))
            return
        body = msgspec.json.encode({"removals": list(removes), "updates": sets})
        self.exchange(RestCall(endpoint=f"POST {NAMESPACE}/properties", namespace=schema, body=body))

    def schema_drop(self, schema: Levels) -> None:
        """Drop a namespace by `DELETE /namespaces/{namespace}`. Raises NotFound, and NotEmpty if it has objects."""
        self.exchange(RestCall(endpoint=f"DELETE {NAMESPACE}", namespace=schema, conflict_meaning="empty"))

    # -- tables and views ------------------------------------------------------------------------------------------

    def table_names(self, schema: Levels) -> list[str]:
        """List the tables of a namespace by `GET …/tables`, all pages. Raises NotFound for the namespace."""
        return self.names(RestCall(endpoint=f"GET {TABLES}", namespace=schema)).names

    def table_exists(self, schema: Levels, table: str) -> bool:
        """Return whether the source answers `HEAD …/tables/{table}` without NotFound."""
        return self._is_there(RestCall(endpoint=f"HEAD {TABLE}", namespace=schema, name=table, missing="table"))

    def view_names(self, schema: Levels) -> list[str]:
        """List the views of a namespace by `GET …/views`, all pages. Raises NotFound for the namespace."""
        return self.names(RestCall(endpoint=f"GET {VIEWS}", namespace=schema)).names

    def view_exists(self, schema: Levels, view: str) -> bool:
        """Return whether the source answers `HEAD …/views/{view}` without NotFound."""
        return self._is_there(RestCall(endpoint=f"HEAD {VIEW}", namespace=schema, name=view, missing="view"))

    def view_load(self, schema: Levels, view: str) -> GravitinoView:
        """Load a view by its REST call, and convert its metadata to Gravitino's columns and SQL representations. Raises
        NotFound.
        """
        try:
            return views.gravitino_view_of(
                self._metadata(RestCall(endpoint=f"GET {VIEW}", namespace=schema, name=view, missing="view"))
            )
        except _UNREADABLE as error:
            raise _unexpected_answer(repr(error)) from error

    def view_create(self, schema: Levels, view: str, *, definition: IcebergViewCreate) -> None:
        """Create a view at the source by its REST call. Raises AlreadyExists."""
        body = {
            "name": view,
            "schema": definition.schema,
            "view-version": definition.version,
            "properties": definition.properties,
        }
        self.exchange(
            RestCall(
                endpoint=f"POST {VIEWS}",
                namespace=schema,
                name=view,
                body=msgspec.json.encode(body),
                conflict_meaning="view",
            )
        )

    def view_alter(self, schema: Levels, view: str, *, updates: Sequence[object]) -> None:
        """Apply updates by one replace-view request. Without updates, only checks that the view exists. Raises
        NotFound.
        """
        if not updates:
            self.exchange(RestCall(endpoint=f"HEAD {VIEW}", namespace=schema, name=view, missing="view"))
            return
        body = {"identifier": _identifier(schema, view), "requirements": [], "updates": updates}
        self.exchange(
            RestCall(
                endpoint=f"POST {VIEW}", namespace=schema, name=view, body=msgspec.json.encode(body), missing="view"
            )
        )

    def view_rename(self, schema: Levels, view: str, *, target: Levels) -> None:
        """Rename a view, also into another namespace, by `POST /views/rename`. Raises NotFound, AlreadyExists."""
        self._rename("view", source=(*schema, view), target=target)

    def view_drop(self, schema: Levels, view: str) -> None:
        """Drop a view at the source by its REST call. Raises NotFound."""
        self.exchange(RestCall(endpoint=f"DELETE {VIEW}", namespace=schema, name=view, missing="view"))

    def _rename(self, kind: str, *, source: Levels, target: Levels) -> None:
        ends = {"source": _identifier(source[:-1], source[-1]), "destination": _identifier(target[:-1], target[-1])}
        body = msgspec.json.encode(ends)
        self.exchange(
            RestCall(
                endpoint=f"POST /{kind}s/rename",
                namespace=source[:-1],
                name=source[-1],
                body=body,
                missing=kind,
                conflict_meaning=kind,
            )
        )

    def _metadata(self, call: RestCall) -> bytes:
        reply = self.exchange(call)
        try:
            return bytes(msgspec.json.decode(reply.body, type=_LoadResult).metadata)
        except (msgspec.DecodeError, RecursionError) as error:
            raise _unexpected_answer(str(error)) from error

    def _load_metadata(self, schema: Levels, table: str) -> bytes:
        return self._metadata(RestCall(endpoint=f"GET {TABLE}", namespace=schema, name=table, missing="table"))

    def table_load(self, schema: Levels, table: str) -> SourceTableInfo:
        """Load a table by its REST call, and convert its metadata to Gravitino's columns and layout. Raises
        NotFound.
        """
        try:
            fields = tables.table_json(tables.iceberg_metadata_of(self._load_metadata(schema, table)))
            gravitino_table = msgspec.convert(fields, type=_GravitinoTable)
        except _UNREADABLE as error:
            raise _unexpected_answer(repr(error)) from error
        layout = {name: fields[name] for name in ("distribution", "sortOrders", "partitioning")}
        return SourceTableInfo(
            comment=gravitino_table.comment,
            columns=gravitino_table.columns,
            indexes=gravitino_table.indexes,
            properties=gravitino_table.properties,
            layout=layout,
        )

    def table_create(self, schema: Levels, table: str, *, definition: tables.GravitinoCreate) -> None:
        """Create a table at the source by its REST call. Raises AlreadyExists."""
        iceberg_create = tables.iceberg_create_of(definition)
        body = {
            "name": table,
            "schema": iceberg_create.schema,
            "partition-spec": iceberg_create.partition_spec,
            "write-order": iceberg_create.write_order,
            "properties": iceberg_create.properties,
        }
        if iceberg_create.location is not None:
            body["location"] = iceberg_create.location
        self.exchange(
            RestCall(
                endpoint=f"POST {TABLES}",
                namespace=schema,
                name=table,
                body=msgspec.json.encode(body),
                conflict_meaning="table",
            )
        )

    def table_alter(self, schema: Levels, table: str, *, changes: Sequence[tables.TableChange]) -> None:
        """Apply changes as one commit. After a commit conflict it is rebuilt from the table's new metadata and retried;
        CommitConflict is raised after `_TRIES_MAX` attempts.
        """
        for attempt in range(1, _TRIES_MAX + 1):
            stored_table = self._load_metadata(schema, table)
            commit_body = tables.commit_of(tables.iceberg_metadata_of(stored_table), changes)
            if not commit_body.updates:
                return
            uuid = msgspec.json.decode(stored_table, type=_TableUuid)
            requirements = [{"type": "assert-table-uuid", "uuid": uuid.table_uuid}, *commit_body.requirements]
            body = {
                "identifier": _identifier(schema, table),
                "requirements": requirements,
                "updates": commit_body.updates,
            }
            try:
                self.exchange(
                    RestCall(
                        endpoint=f"POST {TABLE}",
                        namespace=schema,
                        name=table,
                        body=msgspec.json.encode(body),
                        missing="table",
                    )
                )
            except CommitConflict:
                if attempt == _TRIES_MAX:
                    raise
                continue
            return

    def table_rename(self, schema: Levels, table: str, *, target: Levels) -> None:
        """Rename a table, also into another namespace, by `POST /tables/rename`. Raises NotFound, AlreadyExists."""
        self._rename("table", source=(*schema, table), target=target)

    def table_drop(self, schema: Levels, table: str, *, purge: bool) -> None:
        """Drop a table by its REST call; `purge` sets `purgeRequested`, so that the source deletes the files."""
        query = (("purgeRequested", "true"),) if purge else ()
        self.exchange(RestCall(endpoint=f"DELETE {TABLE}", namespace=schema, name=table, query=query, missing="table"))


class _GravitinoTable(msgspec.Struct):
    """The fields of a table in Gravitino's JSON that `SourceTableInfo` needs."""

    columns: list[dict[str, object]]
    indexes: list[dict[str, object]]
    properties: dict[str, str]
    comment: str | None = None


class _TableUuid(msgspec.Struct, rename="kebab"):
    table_uuid: str


def _identifier(schema: Levels, name: str) -> dict[str, object]:
    return {"namespace": schema, "name": name}
