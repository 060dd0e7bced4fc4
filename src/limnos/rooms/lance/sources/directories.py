# SPDX-License-Identifier: Apache-2.0
"""A directory as a namespace of Lance tables: list, create, register, deregister, rename and drop.

Must not know requests of the protocol. The layout of a directory is detected at each call, because other clients write
to the directory, unless the caller states the layout. Reads write nothing. Decision record 0053.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import NamedTuple

from limnos.formats.lance_contents import DirectoryContents, DirectoryNamespaceEntry, DirectoryTableEntry
from limnos.model.errors import AlreadyExists, BadRequest, InvalidTable, NotEmpty, NotFound, UnsupportedOperation
from limnos.names.iceberg import render
from limnos.names.path import Levels
from limnos.rooms.lance.formats import layouts as rules
from limnos.rooms.lance.formats.layouts import DirectoryLayout, ManifestRow, ManifestRowKind
from limnos.rooms.lance.sources.directory_manifest import DirectoryManifest
from limnos.rooms.lance.sources.questions import Contents
from limnos.rooms.lance.sources.storage import DirectoryStorage


class DirectoryTable(NamedTuple):
    """A table of a directory: its levels, its folder relative to the root, and its properties from the index."""

    levels: Levels
    folder: str
    properties: dict[str, str]


class _DirectoryState(NamedTuple):
    """The content of a directory from one listing."""

    layout: DirectoryLayout
    folders: list[str]
    rows: list[ManifestRow]


class LanceDirectory:
    """A directory of Lance tables. `root` is a result of `rules.root_of`; `options` are Lance's storage options."""

    def __init__(
        self, root: str, *, options: Mapping[str, str] | None = None, layout: DirectoryLayout | None = None
    ) -> None:
        self.root = root
        self.options = dict(options or {})
        self.storage = DirectoryStorage(root, self.options)
        self._stated = layout

    @property
    def layout(self) -> DirectoryLayout | None:
        """The layout of the directory (V0, V1 or V2), as stated or detected; None if it is empty and no layout was
        stated.
        """
        return self._stated or rules.layout_of(self.storage.folders())

    def namespaces(self, levels: Levels = ()) -> list[str]:
        """List the namespaces directly in a namespace. Raises NotFound."""
        state = self._state()
        self._require(state, levels)
        return [row.levels[-1] for row in rules.children_of(state.rows, levels, kind=ManifestRowKind.NAMESPACE)]

    def tables(self, levels: Levels = ()) -> list[DirectoryTable]:
        """List the tables directly in a namespace, by name. Raises NotFound for the namespace."""
        state = self._state()
        self._require(state, levels)
        return self._tables(state, levels)

    def all_tables(self) -> list[DirectoryTable]:
        """Return the tables of all namespaces of the directory, sorted by levels."""
        state = self._state()
        spaces = [(), *(row.levels for row in state.rows if row.kind is ManifestRowKind.NAMESPACE)]
        return sorted(entry for levels in spaces for entry in self._tables(state, levels))

    def list_contents(self) -> DirectoryContents:
        """List all namespaces and tables. A table that was declared and has no data has `declared` set."""
        state = self._state()
        spaces = [row for row in state.rows if row.kind is ManifestRowKind.NAMESPACE]
        entries = [entry for levels in ((), *(row.levels for row in spaces)) for entry in self._tables(state, levels)]
        empty = self.storage.folders_with([entry.folder for entry in entries], rules.RESERVED)
        scheme = "file://" if rules.is_local(self.root) else ""
        return DirectoryContents(
            [DirectoryNamespaceEntry(row.levels, row.properties) for row in spaces],
            [
                DirectoryTableEntry(
                    entry.levels,
                    f"{scheme}{self.location(entry)}",
                    entry.properties,
                    entry.folder in empty and self.is_marked(entry),
                )
                for entry in entries
            ],
        )

    def find(self, levels: Levels) -> DirectoryTable:
        """Return a table by its levels. Raises NotFound for the namespace or the table."""
        return self._find(self._state(), levels)

    def properties(self, levels: Levels = ()) -> dict[str, str]:
        """Return a namespace's properties. Raises NotFound."""
        return self._require(self._state(), levels)

    def location(self, entry: DirectoryTable) -> str:
        """Return a table's location. Raises InvalidTable if its index entry points outside the directory."""
        return rules.place_below(self.root, entry.folder)

    def is_declared(self, entry: DirectoryTable) -> bool:
        """Return whether a table was declared and has no data yet.

        Raises InvalidTable for a folder that is not a table.
        """
        content = self.storage.content(self._folder(entry))
        if "_versions" in content:
            return False
        if rules.RESERVED in content:
            return True
        current = f"contains {content[0]}" if content else "is empty"
        raise InvalidTable(
            f"The folder {self.location(entry)} does not comply with the Lance table format: it {current}, and no table"
            " was written there. Write one, or remove the folder"
        )

    def is_marked(self, entry: DirectoryTable) -> bool:
        """Return whether a folder was declared and has no data yet; False for a folder that is not a table."""
        content = self.storage.content(self._folder(entry))
        return rules.RESERVED in content and "_versions" not in content

    def create_namespace(self, levels: Levels, properties: Mapping[str, str]) -> None:
        """Add a namespace to the directory's index, with its properties.

        Raises NotFound for its parent, AlreadyExists, UnsupportedOperation in a layout without namespaces.
        """
        state = self._for_namespaces(levels)
        self._require(state, levels[:-1])
        self._require_free(state, levels)
        if not self._manifest().insert(ManifestRow(levels, ManifestRowKind.NAMESPACE, None, dict(properties))):
            raise _taken_error(levels, kind="namespace")

    def drop_namespace(self, levels: Levels, *, cascade: bool) -> dict[str, str]:
        """Drop a namespace, with `cascade` also its content. Returns its properties. Raises NotFound, NotEmpty, and
        UnsupportedOperation in a layout without namespaces.
        """
        state = self._for_namespaces(levels)
        properties = self._require(state, levels)
        below = [row for row in state.rows if row.levels[: len(levels)] == levels and row.levels != levels]
        if below and not cascade:
            raise NotEmpty(
                f"Namespace {render(levels)} has {len(below)} objects in it: drop them first, or cascade",
                kind="namespace",
            )
        for row in below:
            if row.kind is ManifestRowKind.TABLE:
                self.drop(row.levels)
        self._manifest().delete(
            [row.levels for row in (*below, ManifestRow(levels, ManifestRowKind.NAMESPACE, None, {}))]
        )
        return properties

    def declare(self, levels: Levels, properties: Mapping[str, str] | None = None) -> DirectoryTable:
        """Reserve a table's name and create its folder.

        Raises NotFound for the namespace, AlreadyExists, BadRequest for an empty path, UnsupportedOperation for
        properties in a layout without an index.
        """
        state = self._for_tables(levels)
        self._require_free(state, levels)
        entry = DirectoryTable(levels, self._new_folder(state, levels), dict(properties or {}))
        self._add(state, entry)
        self.storage.make(entry.folder, rules.RESERVED)
        return entry

    def _new_folder(self, state: _DirectoryState, levels: Levels) -> str:
        if len(levels) > 1 and state.layout is not DirectoryLayout.V2:
            raise NotFound(f"Namespace does not exist: {render(levels[:-1])}", kind="namespace")
        folder = rules.folder_of(levels[0], state.layout) if len(levels) == 1 else ""
        if folder and folder not in state.folders:
            return folder
        if state.layout is not DirectoryLayout.V2:
            raise AlreadyExists(
                f"The folder {self.root}/{folder} exists already: remove it, or choose another name", kind="table"
            )
        return rules.nested_folder_of(levels, digits=secrets.token_hex(4))

    def register(self, levels: Levels, location: str, *, properties: Mapping[str, str] | None = None) -> DirectoryTable:
        """Register an existing folder below the root as a table.

        Raises NotFound for the namespace, AlreadyExists, InvalidTable for a folder without a table,
        UnsupportedOperation in a layout without an index.
        """
        state = self._for_tables(levels)
        if state.layout is not DirectoryLayout.V2:
            raise UnsupportedOperation(
                f"In a directory of layout {state.layout} the name of a table is its folder's name: rename the folder"
            )
        below = location.removeprefix(f"{self.root}/").removeprefix(f"file://{self.root}/")
        entry = DirectoryTable(levels, below, dict(properties or {}))
        self.location(entry)
        if "_versions" not in self.storage.content(below):
            raise InvalidTable(
                f"At {self.root}/{below} there is no Lance table: write one there first, or declare the table"
            )
        self._add(state, entry)
        return entry

    def deregister(self, levels: Levels) -> DirectoryTable:
        """Remove a table's name, but not its files.

        Raises NotFound, UnsupportedOperation in layout V0, where each folder is a table.
        """
        state = self._state()
        entry = self._find(state, levels)
        if state.layout is DirectoryLayout.V0:
            raise UnsupportedOperation(
                "In a directory of layout v0 each folder is a table, which cannot be deregistered: move the folder"
                " away, or drop the table"
            )
        if rules.folder_table(self._folder(entry), DirectoryLayout.V1) is not None:
            self.storage.make(self._folder(entry), rules.DEREGISTERED)
        if state.layout is DirectoryLayout.V2:
            self._manifest().delete([levels])
        return entry

    def drop(self, levels: Levels) -> DirectoryTable:
        """Drop a table and delete its files; other files in the folder stay. Raises NotFound, and in layout V0
        InvalidTable for a folder with other files.
        """
        state = self._state()
        entry = self._find(state, levels)
        folder = self._folder(entry)
        content = self.storage.content(folder)
        others = rules.foreign_names(content)
        if others and state.layout is DirectoryLayout.V0:
            raise InvalidTable(
                f"{self.location(entry)} contains {others[0]}, which does not belong to a Lance table: remove the"
                " folder by hand"
            )
        if state.layout is DirectoryLayout.V2 and any(row.levels == levels for row in state.rows):
            self._manifest().delete([levels])
        if others:
            self.storage.make(folder, rules.DEREGISTERED)
        self.storage.remove(folder, [name for name in content if name not in others])
        return entry

    def rename(self, levels: Levels, target: Levels) -> None:
        """Rename a table, also into another namespace.

        Raises NotFound, AlreadyExists, UnsupportedOperation without an index.
        """
        state = self._for_tables(target)
        entry = self._find(state, levels)
        if state.layout is not DirectoryLayout.V2:
            raise UnsupportedOperation(
                f"In a directory of layout {state.layout} the name of a table is its folder's name: rename the folder"
            )
        self._require_free(state, target)
        if any(row.levels == levels for row in state.rows):
            self._manifest().rename(levels, target)
        elif not self._manifest().insert(ManifestRow(target, ManifestRowKind.TABLE, entry.folder, entry.properties)):
            raise _taken_error(target, kind="table")

    def _state(self) -> _DirectoryState:
        folders = self.storage.folders()
        layout = self._stated or rules.layout_of(folders) or DirectoryLayout.V2
        return _DirectoryState(
            layout,
            folders,
            self._manifest().rows() if layout is DirectoryLayout.V2 and rules.MANIFEST in folders else [],
        )

    def _tables(self, state: _DirectoryState, levels: Levels) -> list[DirectoryTable]:
        rows = rules.children_of(state.rows, levels, kind=ManifestRowKind.TABLE)
        tables = {row.levels: DirectoryTable(row.levels, row.location or "", row.properties) for row in rows}
        if not levels:
            used_names = {row.location for row in state.rows if row.kind is ManifestRowKind.TABLE}
            located_tables = [
                each for each in rules.tables_of(state.folders, state.layout) if each.location not in used_names
            ]
            names = (
                set()
                if state.layout is DirectoryLayout.V0
                else self.storage.folders_with([each.location for each in located_tables], rules.DEREGISTERED)
            )
            for each in located_tables:
                if each.location not in names:
                    tables.setdefault((each.name,), DirectoryTable((each.name,), each.location, {}))
        return [tables[key] for key in sorted(tables)]

    def _find(self, state: _DirectoryState, levels: Levels) -> DirectoryTable:
        self._require(state, levels[:-1])
        for entry in self._tables(state, levels[:-1]):
            if entry.levels == levels:
                return entry
        raise NotFound(f"Table does not exist: {render(levels)}", kind="table")

    def _require(self, state: _DirectoryState, levels: Levels) -> dict[str, str]:
        """Return a namespace's properties. Raises NotFound."""
        if not levels:
            return {}
        for row in state.rows:
            if row.kind is ManifestRowKind.NAMESPACE and row.levels == levels:
                return row.properties
        raise NotFound(f"Namespace does not exist: {render(levels)}", kind="namespace")

    def _require_free(self, state: _DirectoryState, levels: Levels) -> None:
        if any(row.levels == levels and row.kind is ManifestRowKind.NAMESPACE for row in state.rows):
            raise _taken_error(levels, kind="namespace")
        if any(entry.levels == levels for entry in self._tables(state, levels[:-1])):
            raise _taken_error(levels, kind="table")

    def _for_tables(self, levels: Levels) -> _DirectoryState:
        """Return the directory's state for creating a table in it. Raises BadRequest for an empty path, NotFound for
        the namespace.
        """
        if not levels:
            raise BadRequest("Name a table")
        state = self._state()
        self._require(state, levels[:-1])
        return state

    def _for_namespaces(self, levels: Levels) -> _DirectoryState:
        """Return the directory's state for changing namespaces. A V1 directory becomes V2 with its first index. Raises
        BadRequest for the root, UnsupportedOperation in layout V0 or if layout V1 was stated.
        """
        if not levels:
            raise BadRequest("The root namespace always exists: name a namespace in it")
        state = self._state()
        if state.layout is DirectoryLayout.V0 or (state.layout is DirectoryLayout.V1 and self._stated is not None):
            raise UnsupportedOperation(
                f"A directory of layout {state.layout} has only tables, no namespaces: use one of layout v2"
            )
        return state

    def _add(self, state: _DirectoryState, entry: DirectoryTable) -> None:
        self._require_free(state, entry.levels)
        if state.layout is DirectoryLayout.V2 and not self._manifest().insert(
            ManifestRow(entry.levels, ManifestRowKind.TABLE, entry.folder, entry.properties)
        ):
            raise _taken_error(entry.levels, kind="table")
        if state.layout is not DirectoryLayout.V2 and entry.properties:
            raise UnsupportedOperation(
                f"A directory of layout {state.layout} keeps no properties of tables: use one of layout v2"
            )

    def _folder(self, entry: DirectoryTable) -> str:
        return self.location(entry).removeprefix(f"{self.root}/")

    def _manifest(self) -> DirectoryManifest:
        # The module needs Lance's library, unlike V0 and V1.
        from limnos.rooms.lance.sources.directory_manifest import DirectoryManifest  # noqa: PLC0415

        return DirectoryManifest(self.root, self.options)


def list_directory(contents: Contents) -> DirectoryContents:
    """List all namespaces and tables of a directory. Raises InvalidTable for a damaged index, StorageFailed if the
    storage cannot be read.
    """
    directory = LanceDirectory(rules.root_of(contents.location, here="/"), options=contents.options)
    return directory.list_contents()


def _taken_error(levels: Levels, *, kind: str) -> AlreadyExists:
    return AlreadyExists(f"{kind.capitalize()} already exists: {render(levels)}", kind=kind)
