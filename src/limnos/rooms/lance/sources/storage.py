# SPDX-License-Identifier: Apache-2.0
"""Folders and marker files of a directory of Lance tables, on a local disk or in an object store.

Must not know the content of tables. Options are Lance's storage options.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Final

from limnos.model.errors import StorageFailed, UnsupportedOperation
from limnos.model.extras import SCHEME_EXTRAS, extra_of, missing_part
from limnos.rooms.lance.formats.layouts import is_local

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from fsspec import AbstractFileSystem

_THREADS: Final = 16
_S3: Final = {
    "aws_access_key_id": "key",
    "aws_secret_access_key": "secret",
    "aws_session_token": "token",
    "aws_endpoint": "endpoint_url",
}


class DirectoryStorage:
    """Reads and changes the folders of a root directory, on a local disk or in an object store, by fsspec."""

    def __init__(self, root: str, options: Mapping[str, str]) -> None:
        self.root = root
        self.options = dict(options)

    @cached_property
    def _files(self) -> AbstractFileSystem:
        import fsspec  # noqa: PLC0415 - of the extra `server`; requests without files need none

        scheme = "file" if is_local(self.root) else self.root.partition("://")[0]
        options: dict[str, object] = {_S3[key]: value for key, value in self.options.items() if key in _S3}
        if scheme in ("s3", "s3a"):  # s3fs retries by itself
            options["config_kwargs"] = {"connect_timeout": 5, "read_timeout": 60, "retries": {"total_max_attempts": 1}}
        if region := self.options.get("aws_region"):
            options["client_kwargs"] = {"region_name": region}
        try:
            return fsspec.filesystem(scheme, use_listings_cache=False, **({} if scheme == "file" else options))
        except ImportError as error:
            extra = extra_of(error.name or "") or SCHEME_EXTRAS.get(scheme, "s3")
            raise UnsupportedOperation(missing_part(f"{self.root} needs", (extra,))) from error
        except ValueError as error:
            raise UnsupportedOperation(f"{self.root} is in a store that this server cannot read: {error}") from error

    def folders(self) -> list[str]:
        """Return the names of the folders in the root; empty if the root does not exist."""
        return sorted(name for name, is_folder in self._list_folder(self.root) if is_folder)

    def content(self, folder: str) -> list[str]:
        """Return the names of the files and folders in the folder `folder` of the root."""
        return sorted(name for name, _ in self._list_folder(f"{self.root}/{folder}"))

    def folders_with(self, folders: Iterable[str], marker: str) -> set[str]:
        """Return the folders that contain a file named `marker`."""
        names = list(folders)
        with self._reporting_failures("look into"), ThreadPoolExecutor(_THREADS) as threads:
            results = list(threads.map(lambda name: self._files.exists(f"{self.root}/{name}/{marker}"), names))
        return {name for name, is_there in zip(names, results, strict=True) if is_there}

    def make(self, folder: str, marker: str | None) -> None:
        """Create a folder, and in it an empty file `marker` unless that is None: an object store has no empty
        folders.
        """
        with self._reporting_failures("write to"):
            self._files.makedirs(f"{self.root}/{folder}", exist_ok=True)
            if marker is not None:
                self._files.pipe_file(f"{self.root}/{folder}/{marker}", b"")

    def remove(self, folder: str, names: Iterable[str]) -> None:
        """Remove the entries `names` of a folder; on a local disk also the folder itself if it is then empty."""
        with self._reporting_failures("delete from"):
            for name in names:
                self._files.rm(f"{self.root}/{folder}/{name}", recursive=True)
            if is_local(self.root) and not self.content(folder):
                self._files.rmdir(f"{self.root}/{folder}")

    def _list_folder(self, place: str) -> list[tuple[str, bool]]:
        with self._reporting_failures("list"):
            try:
                entries = self._files.ls(place, detail=True)
            except (FileNotFoundError, NotADirectoryError):
                return []
            results = [(entry["name"].rstrip("/").rpartition("/")[2], self._is_folder(entry)) for entry in entries]
        own_name = place.rpartition("/")[2]
        return [
            (name, is_folder) for name, is_folder in results if is_folder or name != own_name
        ]  # a store may list the prefix itself

    def _is_folder(self, entry: Mapping[str, object]) -> bool:
        """Return whether an entry of a listing is a folder, or a symbolic link to a folder."""
        return entry["type"] == "directory" or (bool(entry.get("islink")) and bool(self._files.isdir(entry["name"])))

    @contextmanager
    def _reporting_failures(self, verb: str) -> Iterator[None]:
        try:
            yield
        except UnsupportedOperation:
            raise
        except ModuleNotFoundError as error:
            raise UnsupportedOperation(
                missing_part(f"{self.root} needs", (extra_of(error.name or "") or "server",))
            ) from error
        except Exception as error:  # each store has its own exception types
            raise StorageFailed(
                f"Cannot {verb} {self.root}: {str(error) or type(error).__name__}. Check it, and the credentials"
            ) from error
