# SPDX-License-Identifier: Apache-2.0
"""Files in object stores, through fsspec.

Must not know local paths. Locations are parsed here, so fsspec never sees its shorthands: chained URLs, globs and
caches of listings.

A catalog's properties configure S3, Google's store and Azure's, under Iceberg's names or Gravitino's; Iceberg's take
precedence. Missing options come from the environment, as for every client of these stores. Other stores take their
credentials from the environment.
"""

from __future__ import annotations

import errno
import inspect
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol, cast

from limnos.files import file_errors
from limnos.files.entries import ChooseNames, FileEntry
from limnos.files.locations import parse
from limnos.model.errors import BadRequest, MissingFile, UnsupportedOperation
from limnos.model.extras import SCHEME_EXTRAS, extra_of, missing_part

_S3_NAMES: Final = {
    "endpoint": ("s3.endpoint", "s3-endpoint"),
    "access_key_id": ("s3.access-key-id", "s3-access-key-id"),
    "secret_access_key": ("s3.secret-access-key", "s3-secret-access-key"),
    "session_token": ("s3.session-token", "s3-session-token"),
    "region": ("s3.region", "client.region", "s3-region"),
    "path_style_access": ("s3.path-style-access", "s3-path-style-access"),
}
_GS_NAMES: Final = {
    "token": ("gcs.oauth2.token",),
    "key": ("gcs.service-account-key",),
    "tokens": ("gcs.token-service-endpoint",),
    "endpoint": ("gcs.service.host", "gcs-endpoint"),
    "project": ("gcs.project-id",),
}
_ABFS_NAMES: Final = {
    "account_name": ("adls.account-name", "azure-storage-account-name"),
    "account_key": ("adls.account-key", "azure-storage-account-key"),
    "account_host": ("adls.account-host",),
    "sas_token": ("adls.sas-token",),
    "tenant": ("adls.tenant-id", "azure-tenant-id"),
    "client": ("adls.client-id", "azure-client-id"),
    "secret": ("adls.client-secret", "azure-client-secret"),
}
_NAMES: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {"s3": _S3_NAMES, "gs": _GS_NAMES, "abfs": _ABFS_NAMES}
_WRITTEN: Final = ("LastModified", "last_modified", "updated", "mtime")
_VERSION: Final = (*_WRITTEN, "ETag", "etag", "VersionId", "generation", "metageneration", "size")
"""The fields of fsspec's `info` that change when an object is written again."""
_GS_SCOPE: Final = "https://www.googleapis.com/auth/devstorage.read_write"
_CONNECT_TIMEOUT_S: Final = 5
_READ_TIMEOUT_S: Final = 10
_ATTEMPTS: Final = 3
_LISTED_MAX: Final = 100
"""The number of objects of a prefix that are inspected for a file."""


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """Options for reaching a store. Stores with equal options share a connection pool. `repr` hides the values."""

    values: tuple[tuple[str, str], ...]

    def __repr__(self) -> str:
        return f"Options({', '.join(name for name, _ in self.values)})"


class _FileSystem(Protocol):
    """The methods of fsspec's file systems that this module calls."""

    retries: int

    def pipe_file(self, path: str, value: bytes, **options: str) -> object: ...
    def cat_file(self, path: str, start: int | None = None, end: int | None = None) -> bytes: ...
    def info(self, path: str) -> dict[str, object]: ...
    def rm_file(self, path: str) -> None: ...
    def ls(self, path: str, *, detail: bool = True) -> object: ...
    def find(self, path: str, maxdepth: int | None = None, *, detail: bool = False) -> object: ...


class _FileSystemClass(Protocol):
    def __call__(self, **options: object) -> _FileSystem: ...
    def _strip_protocol(self, url: str) -> str: ...
    def _get_kwargs_from_urls(self, url: str) -> dict[str, object]: ...


def options_from(scheme: str, properties: Mapping[str, str]) -> StoreOptions:
    """Select a scheme's options from a catalog's properties.

    Raises BadRequest if one option of a pair, such as access key and secret key, is missing.
    """
    results = {}
    for option, names in _NAMES.get(scheme, {}).items():
        value = next((properties[name] for name in names if properties.get(name)), None)
        if value is not None:
            results[option] = value
    if ("access_key_id" in results) != ("secret_access_key" in results):
        raise BadRequest("Set both 's3.access-key-id' and 's3.secret-access-key', or neither to use the environment's.")
    return StoreOptions(tuple(results.items()))


class RemoteFiles:
    """The FileStore of one object store: a scheme, a root URL (its account or bucket), and options."""

    def __init__(self, scheme: str, *, root: str, options: StoreOptions) -> None:
        self._class = _class_of(scheme)
        account = self._class._get_kwargs_from_urls(root)  # noqa: SLF001 - how fsspec itself opens URLs
        arguments = _arguments(scheme, {**dict(options.values), **_string_values(account)})
        # No instance from fsspec's own cache: those are shared with other users of fsspec in this process.
        try:
            self._fs = self._class(**(arguments | account), use_listings_cache=False, skip_instance_cache=True)
        except ValueError as error:  # adlfs, without an account's name
            raise file_errors.storage_error("reach", root, error, remote=True) from error
        self._fs.retries = _ATTEMPTS
        pipe = getattr(self._fs, "_pipe_file", self._fs.pipe_file)
        self._creates = "mode" in inspect.signature(pipe).parameters

    def write_new(self, location: str, data: bytes, *, first: bool = False) -> None:
        path = self._path(location)
        try:
            self._create(path, data)
        except Exception as error:
            if not _is_taken(error):
                raise file_errors.storage_error("write", location, error, remote=True) from error
            # A retry after a lost response finds the file that the first attempt wrote.
            if self.read(location) != data:
                raise file_errors.taken_error(location) from error

    def read(self, location: str, *, bytes_max: int | None = None) -> bytes:
        path = self._path(location)
        end = None if bytes_max is None else bytes_max + 1
        try:
            data = self._fs.cat_file(path, start=None if end is None else 0, end=end)
        except Exception as error:
            if file_errors.is_missing(error):
                raise file_errors.missing_error(location) from error
            if end is None or "InvalidRange" not in str(error.__cause__):
                raise file_errors.storage_error("read", location, error, remote=True) from error
            return b""  # an empty file has no first byte
        if bytes_max is not None and len(data) > bytes_max:
            raise file_errors.too_large_error(location, bytes_max)
        return data

    def read_range(self, location: str, *, start: int, count: int) -> bytes:
        """Read `count` bytes of a file from the given position.

        Raises MissingFile if the file does not exist, ServiceUnavailable if a retry may help, else StorageFailed.
        """
        path = self._path(location)
        try:
            return self._fs.cat_file(path, start=start, end=start + count)
        except Exception as error:
            if file_errors.is_missing(error):
                raise file_errors.missing_error(location) from error
            raise file_errors.storage_error("read", location, error, remote=True) from error

    def exists(self, location: str) -> bool:
        return self.size(location) is not None

    def size(self, location: str) -> int | None:
        path = self._path(location)
        try:
            info = self._fs.info(path)
        except Exception as error:
            if file_errors.is_missing(error):
                return None
            raise file_errors.storage_error("check", location, error, remote=True) from error
        return _entry_of("", info).size if info["type"] == "file" else None

    def version(self, location: str) -> tuple[str, ...] | None:
        """Return the version of a file in the store: entity tag, time and size; None for a missing file.

        Raises StorageFailed, ServiceUnavailable.
        """
        try:
            info = self._fs.info(self._path(location))
        except Exception as error:
            if file_errors.is_missing(error):
                return None
            raise file_errors.storage_error("check", location, error, remote=True) from error
        return tuple([f"{name}={info[name]}" for name in _VERSION if info.get(name) is not None])

    def below(self, location: str) -> Iterator[str]:
        path = self._path(location)
        parsed_location = parse(location)
        try:
            names = cast("list[str]", self._fs.find(path))
        except Exception as error:
            if file_errors.is_missing(error):
                return
            raise file_errors.storage_error("list", location, error, remote=True) from error
        for each in names:
            if each != path:  # an object whose name is the prefix itself is not below it
                yield f"{parsed_location.scheme}://{parsed_location.authority}/{each.partition('/')[2]}"

    def holds(self, location: str) -> bool:
        path = self._path(location)
        try:
            return self._has_any(path.rstrip("/"))
        except Exception as error:
            if file_errors.is_missing(error):
                return False
            raise file_errors.storage_error("list", location, error, remote=True) from error

    def is_empty(self, location: str) -> bool:
        return not self.exists(location) and not self.holds(location)

    def _has_any(self, path: str) -> bool:
        """Return whether any file is below a path.

        Reads one page of a listing by prefix if the store supports that, else lists directory by directory.
        """
        listing = getattr(self._fs, "call_s3", None)
        if listing is not None:
            bucket, _, key = path.partition("/")
            page = listing("list_objects_v2", Bucket=bucket, Prefix=f"{key}/", MaxKeys=_LISTED_MAX)
            result = page.get("Contents", [])
            # Hadoop's clients leave an empty object for each directory.
            return bool(page.get("IsTruncated")) or any(
                each["Size"] or not str(each["Key"]).endswith("/") for each in result
            )
        children = cast("list[dict[str, object]]", self._fs.ls(path, detail=True))
        if any(each.get("type") != "directory" for each in children):
            return True
        return any(self._has_any(str(each["name"]).rstrip("/")) for each in children)

    def delete(self, location: str) -> None:
        path = self._path(location)
        try:
            self._fs.rm_file(path)
        except Exception as error:
            if not file_errors.is_missing(error):
                raise file_errors.storage_error("delete", location, error, remote=True) from error

    def entries(self, location: str, *, deep: bool = False) -> list[FileEntry]:
        path = self._path(location)
        top = path.rstrip("/")
        try:
            result = self._fs.find(path, maxdepth=None if deep else 1, detail=True)
        except Exception as error:
            if file_errors.is_missing(error):
                return []
            raise file_errors.storage_error("list", location, error, remote=True) from error
        return [
            _entry_of(key.removeprefix(f"{top}/"), fields)
            for key, fields in cast("dict[str, dict[str, object]]", result).items()
            if fields.get("type") == "file" and (key.startswith(f"{top}/") if deep else key.rpartition("/")[0] == top)
        ]

    def list_selected(self, location: str, choose: ChooseNames) -> list[FileEntry]:
        entries = {each.name: each for each in self.entries(location)}
        return [entries[name] for name in choose(list(entries))]

    def directories(self, location: str) -> list[str]:
        path = self._path(location)
        try:
            ls = self._fs.ls(path, detail=True)
        except Exception as error:
            if file_errors.is_missing(error):
                return []
            raise file_errors.storage_error("list", location, error, remote=True) from error
        entries = cast("list[dict[str, object]]", ls)
        return [str(each["name"]).rstrip("/").rpartition("/")[2] for each in entries if each.get("type") == "directory"]

    def link_new(self, source: str, target: str) -> None:
        data = self.read(source)
        for _ in range(file_errors.TRIES_MAX):
            try:
                self.write_new(target, data)
            except MissingFile:  # the target was deleted while it was compared
                continue
            return
        raise file_errors.taken_error(target)

    def move(self, source: str, target: str) -> None:
        try:
            data = self.read(source)
        except MissingFile:
            return
        self.write_new(target, data)
        if self._has_content(source, data):
            self.delete(source)

    def _has_content(self, location: str, data: bytes) -> bool:
        """Return whether a file exists with this content.

        Checked before a delete, because stores have no conditional delete and another process may replace the file.
        """
        try:
            return self.read(location) == data
        except MissingFile:
            return False

    def _path(self, location: str) -> str:
        parsed_location = parse(location)
        if not parsed_location.segments:
            raise BadRequest(f"Location {location} names a whole store, not a file in it.")
        return self._class._strip_protocol(str(parsed_location))  # noqa: SLF001 - as above

    def _create(self, path: str, data: bytes) -> None:
        """Write a file only if none exists.

        In a store without conditional writes the write is unconditional, since names are unique.
        """
        if not self._creates:
            self._fs.pipe_file(path, data)
            return
        try:
            self._fs.pipe_file(path, data, mode="create")
        except OSError as error:
            if error.errno != errno.ENOSYS:
                raise
            self._fs.pipe_file(path, data)


def _entry_of(name: str, fields: Mapping[str, object]) -> FileEntry:
    modified_at = next((fields[key] for key in _WRITTEN if isinstance(fields.get(key), datetime)), None)
    size = fields.get("size")
    return FileEntry(
        name,
        size if isinstance(size, int) else 0,
        int(cast("datetime", modified_at).timestamp() * 1000) if modified_at else 0,
    )


def _string_values(account: Mapping[str, object]) -> dict[str, str]:
    return {key: value for key, value in account.items() if isinstance(value, str)}


def _arguments(scheme: str, values: dict[str, str]) -> dict[str, object]:
    if scheme == "s3":
        return _s3_arguments(values)
    if scheme == "gs":
        return _gs_arguments(values)
    return _abfs_arguments(values) if scheme == "abfs" else {}


def _abfs_arguments(values: dict[str, str]) -> dict[str, object]:
    """Convert options to the constructor arguments of adlfs.

    Service principals authenticate at AZURE_AUTHORITY_HOST, or at the public Azure cloud if that is not set.
    """
    fields: dict[str, object] = {"connection_timeout": _CONNECT_TIMEOUT_S, "read_timeout": _READ_TIMEOUT_S}
    fields |= {key: values[key] for key in ("account_name", "account_host", "sas_token") if key in values}
    if "sas_token" in values:
        return fields
    if "account_key" in values:
        # adlfs derives the account's name from the host, which works only for Azure's own hosts. So pass it, too.
        fields["credential"] = {"account_name": values.get("account_name", ""), "account_key": values["account_key"]}
    elif {"tenant", "client", "secret"} <= values.keys():
        from azure.identity.aio import ClientSecretCredential

        fields["credential"] = ClientSecretCredential(
            values["tenant"], values["client"], values["secret"], disable_instance_discovery=True
        )
    return fields


def _gs_arguments(values: dict[str, str]) -> dict[str, object]:
    """Convert options to the constructor arguments of gcsfs.

    The token URL inside a service account's key is ignored, since the catalog's creator could choose any host.
    """
    fields: dict[str, object] = {}
    if "endpoint" in values:
        fields["endpoint_url"] = values["endpoint"]
    if "project" in values:
        fields["project"] = values["project"]
    if "token" in values:
        from google.oauth2.credentials import Credentials

        fields["token"] = Credentials(values["token"])  # type: ignore[no-untyped-call]  # google-auth has no types
    elif "key" in values:
        from google.oauth2 import service_account

        result = json.loads(values["key"])
        info = {
            "client_email": result["client_email"],
            "private_key": result["private_key"],
            "token_uri": f"{values['tokens'].rstrip('/')}/token"
            if "tokens" in values
            else "https://oauth2.googleapis.com/token",
        }
        fields["token"] = service_account.Credentials.from_service_account_info(info, scopes=[_GS_SCOPE])  # type: ignore[no-untyped-call]  # as above
    return fields


def _class_of(scheme: str) -> _FileSystemClass:
    try:
        if scheme == "gs":
            # Not the class that fsspec would choose: that one queries another service for the type of a bucket.
            from gcsfs.core import GCSFileSystem  # type: ignore[import-untyped]

            return cast("_FileSystemClass", GCSFileSystem)
        import fsspec

        return cast("_FileSystemClass", fsspec.get_filesystem_class(scheme))
    except ImportError as error:
        raise UnsupportedOperation(_missing_package_text(scheme, error)) from error


def _missing_package_text(scheme: str, error: ImportError) -> str:
    need = f"Locations {scheme}:// need"
    if scheme == "oss":
        return f"{need} a package that is not installed here: pip install ossfs"
    return missing_part(need, (extra_of(error.name or "") or SCHEME_EXTRAS.get(scheme, "server"),))


def _s3_arguments(options: Mapping[str, str]) -> dict[str, object]:
    """Convert options to the constructor arguments of s3fs: `client_kwargs` go to the client, `config_kwargs` to
    botocore's configuration.
    """
    config: dict[str, object] = {
        "connect_timeout": _CONNECT_TIMEOUT_S,
        "read_timeout": _READ_TIMEOUT_S,
        "retries": {"mode": "standard", "total_max_attempts": 1},  # s3fs retries by itself
    }
    if "path_style_access" in options:
        style = "path" if options["path_style_access"].strip().lower() == "true" else "virtual"
        config["s3"] = {"addressing_style": style}
    return {
        "key": options.get("access_key_id"),
        "secret": options.get("secret_access_key"),
        "token": options.get("session_token"),
        "endpoint_url": options.get("endpoint"),
        "client_kwargs": {"region_name": options["region"]} if "region" in options else {},
        "config_kwargs": config,
    }


def _is_taken(error: Exception) -> bool:
    """Return whether a conditional write failed because the file exists.

    Implementations of S3 return different errors for this.
    """
    return isinstance(error, FileExistsError) or "PreconditionFailed" in str(error.__cause__)
