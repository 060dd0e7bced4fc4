# SPDX-License-Identifier: Apache-2.0
"""A directory as a Lance namespace implementation: names are handled by our own rules, and versions, tags and branches
by Lance's library.

Must not know HTTP. Requests about a table's versions go to Lance's own implementation over the same directory, after a
check that the table exists: Lance's implementation treats a missing namespace as an empty namespace. Requests about
rows are not served here but by worker processes (`worker`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from lance.namespace import DirectoryNamespace

from limnos.model.errors import AlreadyExists, BadRequest, NotFound, UnsupportedOperation
from limnos.names.parts import check_levels
from limnos.names.path import Levels
from limnos.rooms.lance.formats.layouts import DirectoryLayout, is_local
from limnos.rooms.lance.sources.delegate import NamespaceDelegate, fit_request
from limnos.rooms.lance.sources.directories import DirectoryTable, LanceDirectory
from limnos.rooms.lance.sources.questions import Describe
from limnos.rooms.lance.sources.reading import describe

Fields = dict[str, object]


class DirectoryRequests:
    """The operations of the Lance Namespace protocol on names; each method takes the request model of its operation."""

    def __init__(self, directory: LanceDirectory) -> None:
        self._directory = directory

    def create_namespace(self, request: Any) -> Fields:  # noqa: ANN401 - requests are Lance's own types
        """Create the requested namespace, with its properties. Raises NotFound for its parent, AlreadyExists."""
        levels, properties = _levels(request), dict(request.properties or {})
        mode = _word(request.mode, ("create", "existok", "overwrite"), field="mode")
        if not levels:
            raise AlreadyExists("Namespace already exists: the root namespace always exists", kind="namespace")
        try:
            self._directory.create_namespace(levels, properties)
        except AlreadyExists as error:
            if mode == "create" or error.kind != "namespace":
                raise
            if mode == "existok":
                return {"properties": self._directory.properties(levels)}
            self._directory.drop_namespace(levels, cascade=True)
            self._directory.create_namespace(levels, properties)
        return {"properties": properties}

    def list_namespaces(self, request: Any) -> Fields:  # noqa: ANN401
        """Return a page of the child namespaces' names and the next page token."""
        return _page("namespaces", self._directory.namespaces(_levels(request)), request=request)

    def describe_namespace(self, request: Any) -> Fields:  # noqa: ANN401
        """Return a namespace's properties. Raises NotFound."""
        return {"properties": self._directory.properties(_levels(request))}

    def namespace_exists(self, request: Any) -> Fields:  # noqa: ANN401
        """Check that a namespace exists. Raises NotFound."""
        return self.describe_namespace(request)

    def drop_namespace(self, request: Any) -> Fields:  # noqa: ANN401
        """Drop a namespace; with the behavior Cascade also its content. Raises NotEmpty, and NotFound unless the mode
        is Skip.
        """
        mode = _word(request.mode, ("fail", "skip"), field="mode")
        cascade = _word(request.behavior, ("restrict", "cascade"), field="behavior") == "cascade"
        try:
            return {"properties": self._directory.drop_namespace(_levels(request), cascade=cascade)}
        except NotFound:
            if mode == "fail":
                raise
            return {}

    def list_tables(self, request: Any) -> Fields:  # noqa: ANN401
        """Return a page of the names of a namespace's tables and the next page token."""
        names = [
            entry.levels[-1] for entry in self._without_declared(self._directory.tables(_levels(request)), request)
        ]
        return _page("tables", names, request=request)

    def list_all_tables(self, request: Any) -> Fields:  # noqa: ANN401
        """Return a page of the names of all tables. A name is a JSON array of levels, which the caller converts to the
        protocol's identifier.
        """
        entries = self._without_declared(self._directory.all_tables(), request)
        return _page("tables", [msgspec.json.encode(entry.levels).decode() for entry in entries], request=request)

    def declare_table(self, request: Any) -> Fields:  # noqa: ANN401
        """Reserve a table's name, and create its folder. Returns the table's location. Raises AlreadyExists, BadRequest
        if the request states a location.
        """
        if request.location:
            raise BadRequest("The layout of the directory determines a table's location: leave out location")
        return self._describe(self._directory.declare(_levels(request), request.properties or {}))

    def register_table(self, request: Any) -> Fields:  # noqa: ANN401
        """Register a folder of the directory as a table; the mode Overwrite replaces an existing name. Raises
        AlreadyExists, InvalidTable for a folder without a table.
        """
        levels = _levels(request)
        if _word(request.mode, ("create", "overwrite"), field="mode") == "overwrite":
            try:
                self._directory.deregister(levels)
            except NotFound as error:
                if error.kind != "table":
                    raise
        return self._describe(self._directory.register(levels, request.location, properties=request.properties or {}))

    def table_exists(self, request: Any) -> Fields:  # noqa: ANN401
        """Check that a table and, if stated, its version exist. Raises NotFound."""
        entry = self._directory.find(_levels(request))
        if request.version is not None:
            self._read(entry, version=request.version)
        return {}

    def describe_table(self, request: Any) -> Fields:  # noqa: ANN401
        """Return a table's location, and its version and schema if it has data and the request does not exclude them.
        Raises NotFound (table, version, tag, branch).
        """
        entry = self._directory.find(_levels(request))
        fields = {**self._describe(entry), "table": entry.levels[-1], "namespace": list(entry.levels[:-1])}
        if request.load_detailed_metadata is False and not request.check_declared:
            return fields
        fields["is_only_declared"] = is_declared = self._directory.is_declared(entry)
        if request.load_detailed_metadata is False or is_declared:
            if request.version is not None or request.tag is not None:
                raise NotFound(str(request.version or request.tag), kind="version" if request.version else "tag")
            return fields
        result = self._read(entry, version=request.version, tag=request.tag, branch=request.branch)
        schema = {"fields": msgspec.json.decode(result.fields), "metadata": result.schema_metadata}
        return {
            **fields,
            "version": result.version,
            "schema": schema,
            "metadata": result.metadata,
            "stats": result.stats,
        }

    def deregister_table(self, request: Any) -> Fields:  # noqa: ANN401
        """Remove a table's name, but not its files."""
        return self._describe_dropped(self._directory.deregister(_levels(request)))

    def drop_table(self, request: Any) -> Fields:  # noqa: ANN401
        """Drop a table and the files that belong to it; other files of its folder stay. Raises as `LanceDirectory.drop`
        does.
        """
        return self._describe_dropped(self._directory.drop(_levels(request)))

    def rename_table(self, request: Any) -> Fields:  # noqa: ANN401
        """Rename a table, also into another namespace. Raises NotFound, AlreadyExists."""
        levels = _levels(request)
        above = levels[:-1] if request.new_namespace_id is None else tuple(request.new_namespace_id)
        self._directory.rename(levels, check_levels((*above, request.new_table_name)))
        return {}

    def _without_declared(self, entries: Sequence[DirectoryTable], request: Any) -> list[DirectoryTable]:  # noqa: ANN401
        """Filter a list: without tables that are only declared, if the request excludes them. A folder that is not a
        table stays in the list.
        """
        if request.include_declared is not False:
            return list(entries)
        return [entry for entry in entries if not self._directory.is_marked(entry)]

    def _read(
        self, entry: DirectoryTable, *, version: int | None = None, tag: str | None = None, branch: str | None = None
    ) -> Any:  # noqa: ANN401
        if self._directory.is_declared(entry):
            raise NotFound(str(version or tag or branch), kind="version")
        return describe(
            Describe(
                location=self._directory.location(entry),
                options=self._directory.options,
                version=version,
                tag=tag,
                branch=branch,
            )
        )

    def _describe(self, entry: DirectoryTable) -> Fields:
        location = self._directory.location(entry)
        uri = f"file://{location}" if is_local(location) else location
        return {"location": uri, "table_uri": uri, "properties": entry.properties}

    def _describe_dropped(self, entry: DirectoryTable) -> Fields:
        return {"id": list(entry.levels), **self._describe(entry)}


class _LanceVersions:
    """Lance's directory implementation for the operations on versions, tags and branches; it first checks that the
    table exists.
    """

    def __init__(self, directory: LanceDirectory) -> None:
        self._directory = directory
        options = {f"storage.{key}": value for key, value in directory.options.items()}
        self._native = DirectoryNamespace(root=directory.root, **options)  # type: ignore[no-untyped-call]

    def __getattr__(self, method: str) -> Callable[..., object]:
        result = getattr(self._native, method)

        def call_on_levels(request: Any) -> object:  # noqa: ANN401
            levels = _levels_of(request)
            if self._directory.layout is DirectoryLayout.V0:
                raise UnsupportedOperation(
                    "Versions, tags and branches are not available with directory layout v0: open the table at the"
                    " location that describe returns"
                )
            if levels:
                self._directory.find(levels)
            return result(fit_request(request, result))

        return call_on_levels


def delegate_of(directory: LanceDirectory) -> NamespaceDelegate:
    """Return a delegate for a directory: `DirectoryRequests` for names, Lance's implementation for versions."""
    return NamespaceDelegate(_LanceVersions(directory), DirectoryRequests(directory))


def _levels(request: Any) -> Levels:  # noqa: ANN401
    return check_levels(request.id or ())


def _levels_of(request: Any) -> Levels:  # noqa: ANN401
    result = request.get("id") if isinstance(request, dict) else getattr(request, "id", None)
    return check_levels(result or ())


def _word(text: str | None, words: tuple[str, ...], *, field: str) -> str:
    """Return the word of `words` that a request's `field` has, ignoring case and underscores; without a value, the
    first word. Raises BadRequest for any other value.
    """
    result = (text or words[0]).lower().replace("_", "")
    if result not in words:
        raise BadRequest(f"{field} must be one of {', '.join(words)}, not {text}")
    return result


def _page(field: str, names: list[str], *, request: Any) -> Fields:  # noqa: ANN401
    """Return a page of names after the page token, which is the last name of the previous page."""
    left = [name for name in sorted(names) if request.page_token is None or name > request.page_token]
    texts = left if request.limit is None else left[: request.limit]
    more = len(texts) < len(left) and bool(texts)
    return {field: texts, **({"page_token": texts[-1]} if more else {})}
