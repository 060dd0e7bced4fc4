# SPDX-License-Identifier: Apache-2.0
"""A directory of Iceberg tables on this machine as the source of a migration: a table is a directory with `metadata`.

A directory above tables is a namespace. The newest metadata file is the one that `version-hint.text` leads to, or
else the one with the highest version. Nothing is written there, so there is no cut-over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import msgspec

from limnos.cli.failures import UsageError
from limnos.cli.migration.states import Name, ObjectError, ViewState, state_of
from limnos.model.errors import InvalidTable, MissingFile
from limnos.model.table_states import TableState

FILE_BYTES_MAX: Final = 512 << 20


class TableDirectory:
    """A directory of tables. Raises UsageError if it is none."""

    def __init__(self, uri: str) -> None:
        parts = urlsplit(uri)
        if parts.scheme not in ("", "file"):
            raise UsageError(
                f"'{uri}' is not a directory of this machine", hint="on an object store, use the catalog that wrote it"
            )
        self.root = Path(unquote(parts.path) if parts.scheme else uri).resolve()
        if not self.root.is_dir():
            raise UsageError(f"'{uri}' is not a directory")

    def close(self) -> None:
        """No-op: nothing is open."""

    def namespaces(self) -> Iterator[Name]:
        """Yield the directories that contain tables, at any depth, parents before children."""
        if self._root_name():
            yield self._root_name()
        waiting: list[tuple[Name, Path]] = [((), self.root)]
        while waiting:
            name, place = waiting.pop(0)
            below = [each for each in _directories(place) if not _is_table(each)]
            if name:
                yield name
            waiting += [((*name, each.name), each) for each in below if each.name != "metadata"]

    def _root_name(self) -> Name:
        """Return the namespace of tables directly in the directory, which has its name; () if there are none."""
        has_tables = not (self.root / self.root.name).exists() and any(map(_is_table, _directories(self.root)))
        return (self.root.name,) if has_tables else ()

    def _place(self, namespace: Name) -> Path:
        return self.root if namespace == self._root_name() else self.root.joinpath(*namespace)

    def namespace_properties(self, namespace: Name) -> dict[str, str]:
        """Return no properties: a directory has none."""
        del namespace
        return {}

    def tables(self, namespace: Name) -> Iterator[str]:
        """Yield the names of the tables of a directory."""
        for each in _directories(self._place(namespace)):
            if _is_table(each):
                yield each.name

    def views(self, namespace: Name) -> list[str]:
        """Return no views."""
        del namespace
        return []

    def table(self, path: Name) -> TableState:
        """Read the newest metadata file of a table. Raises ObjectError."""
        file = _newest(self._place(path[:-1]) / path[-1] / "metadata")
        try:
            if file.stat().st_size > FILE_BYTES_MAX:
                raise ObjectError(f"{file} is larger than {FILE_BYTES_MAX >> 20} MiB")
            metadata = msgspec.json.decode(file.read_bytes())
        except (OSError, msgspec.DecodeError) as error:
            raise ObjectError(f"{file} cannot be read: {error}") from error
        answer: dict[str, Any] = {"metadata-location": str(file), "metadata": metadata}
        return state_of(answer)

    def view(self, path: Name) -> ViewState:
        """Raise ObjectError: there are no views."""
        raise ObjectError(f"{path} is no view", status=404)

    def mark(self, path: Name, properties: Mapping[str, str], *, expected: TableState) -> TableState:
        """Raise ObjectError: nothing is written to the directory."""
        del path, properties, expected
        raise ObjectError("a directory cannot be marked: stop its writers, and take away their right to write there")

    def retire(self, path: Name, name: str) -> str:
        """Raise ObjectError: nothing is written to the directory."""
        del path, name
        raise ObjectError("a directory is not renamed")


def _directories(place: Path) -> list[Path]:
    try:
        return sorted(each for each in place.iterdir() if each.is_dir() and not each.is_symlink())
    except OSError:
        return []


def _is_table(place: Path) -> bool:
    from limnos.formats.iceberg import metadata_files

    try:
        return any(metadata_files.is_metadata_file(each.name) for each in (place / "metadata").iterdir())
    except OSError:
        return False


def _newest(place: Path) -> Path:
    from limnos.formats.iceberg import metadata_files

    try:
        names = [each.name for each in place.iterdir()]
        hint = place / metadata_files.HINT
        text = hint.read_bytes()[: metadata_files.HINT_BYTES_MAX] if hint.is_file() else b""
        return place / metadata_files.newest_metadata_file(names, hint=text.decode("utf-8", "replace"))
    except MissingFile as error:
        raise ObjectError(f"{place}: {error.message}", status=404) from error
    except InvalidTable as error:
        raise ObjectError(f"{place}: {error.message}") from error
    except OSError as error:
        raise ObjectError(f"{place} cannot be read: {error}", status=404) from error
