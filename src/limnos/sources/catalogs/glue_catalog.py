# SPDX-License-Identifier: Apache-2.0
"""Iceberg tables of AWS Glue's data catalog, by the parameter `metadata_location` of its tables.

Must not know credentials: AWS's library takes them from the environment, as for all its clients. Changes name the
version of the entry that was read, and Glue refuses them if another client was faster.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ConnectionError, HTTPClientError, NoCredentialsError

from limnos.model.errors import (
    BadRequest,
    CommitConflict,
    InvalidTable,
    LimnosError,
    NotFound,
    SourceFailed,
    SourceRefused,
    StateUnknown,
    UnsupportedOperation,
)
from limnos.names.path import Levels
from limnos.sources.catalogs.entries import (
    ICEBERG,
    METADATA,
    PREVIOUS,
    TABLE_TYPE,
    CatalogEntry,
    EntryKind,
    quote_word,
)

CLOSED: Final = "LIMNOS-MOVED"
"""The value of `table_type` of a closed entry: no client takes it for an Iceberg table."""
CLOSED_METADATA: Final = "limnos.metadata-location"
"""The parameter that has the last metadata file of a closed entry."""
TRIES: Final = 5
PAGES_MAX: Final = 100_000
_REGION: Final = re.compile(r"[a-z]{2}(?:-[a-z]+)+-\d")
_INPUT: Final = (
    "Name",
    "Description",
    "Owner",
    "LastAccessTime",
    "LastAnalyzedTime",
    "Retention",
    "StorageDescriptor",
    "PartitionKeys",
    "ViewOriginalText",
    "ViewExpandedText",
    "TableType",
    "Parameters",
    "TargetTable",
)
"""The fields of an entry that an update repeats."""
_CONFLICTS: Final = frozenset({"ConcurrentModificationException", "ResourceNotReadyException"})
_REFUSALS: Final = frozenset(
    {
        "AccessDeniedException",
        "UnrecognizedClientException",
        "InvalidSignatureException",
        "ExpiredTokenException",
        "InvalidClientTokenId",
        "IncompleteSignature",
        "InvalidInputException",
    }
)
_SAFE: Final = re.compile(r"[^\x20-\x7e]")


class GlueCatalog:
    """The databases of an account's catalog in a region.

    Args:
        uri: A region such as `eu-central-1`, or the URL of an endpoint.
        account: The account whose catalog it is; None for that of the credentials.
        timeout_s: The time in seconds after which a request ends.

    Raises:
        BadRequest: The address is neither a region nor a URL, or AWS's settings name no region.
    """

    def __init__(self, uri: str, *, account: str | None, timeout_s: float) -> None:
        is_region = _REGION.fullmatch(uri) is not None
        if not is_region and not uri.startswith(("https://", "http://")):
            raise BadRequest("The address of Glue is a region such as eu-central-1, or the URL of its endpoint")
        if "@" in uri:
            raise BadRequest("The address of Glue has no user and no password: AWS's environment has the credentials")
        self.label = f"glue {uri}"
        self._account = {} if account is None else {"CatalogId": account}
        # A repeated update could meet its own first attempt, and be taken for one that lost.
        retries = {"mode": "standard", "total_max_attempts": 1}
        config = Config(connect_timeout=timeout_s, read_timeout=timeout_s, retries=retries)
        try:
            self._client: Any = botocore.session.get_session().create_client(
                "glue",
                region_name=uri if is_region else None,
                endpoint_url=None if is_region else uri,
                config=config,
            )
        except (BotoCoreError, ValueError) as error:
            raise BadRequest(f"Glue cannot be used: {_short(error)}") from error

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def namespaces(self) -> list[Levels]:
        """Return the databases, sorted."""
        return sorted((str(each["Name"]),) for each in self._pages("get_databases", "DatabaseList"))

    def namespace_properties(self, namespace: Levels) -> dict[str, str]:
        """Return a database's parameters, location, and description."""
        database = self._call("get_database", {"Name": namespace[-1]})["Database"]
        properties = {str(key): str(value) for key, value in (database.get("Parameters") or {}).items()}
        if database.get("LocationUri"):
            properties["location"] = str(database["LocationUri"])
        if database.get("Description"):
            properties.setdefault("comment", str(database["Description"]))
        return properties

    def names(self, namespace: Levels) -> list[tuple[str, EntryKind]]:
        """Return the names in a database; those without Iceberg metadata are of the kind `other`."""
        tables = self._pages("get_tables", "TableList", arguments={"DatabaseName": namespace[-1]})
        return sorted((str(each["Name"]), _kind_of(each)) for each in tables)

    def entry(self, path: Levels) -> CatalogEntry:
        """Read a table's parameters. A closed entry is a table with its last metadata file."""
        return _entry_of(self._table(path))

    def replace(self, path: Levels, location: str, *, expected: str, properties: Mapping[str, str]) -> None:
        """Set the parameters of a table, if its version is the one that was read."""
        table = self._table(path)
        if _entry_of(table).metadata_location != expected or _is_closed(table):
            raise CommitConflict("another client committed to it meanwhile")
        self._update(path, table, changes={**properties, METADATA: location, PREVIOUS: expected})

    def retire(self, path: Levels, *, name: str) -> str:
        """Close the entry in one step: Glue cannot rename a table, and a copy with a deletion could lose a commit."""
        del name
        for attempt in range(TRIES):
            table = self._table(path)
            if _is_closed(table):
                break
            location = _entry_of(table).metadata_location
            try:
                self._update(path, table, changes={TABLE_TYPE: CLOSED, CLOSED_METADATA: location}, leaves_out=METADATA)
            except CommitConflict:
                if attempt == TRIES - 1:
                    raise
            else:
                break
        return path[-1]

    def _table(self, path: Levels) -> Mapping[str, Any]:
        table = self._call("get_table", {"DatabaseName": path[0], "Name": path[-1]}).get("Table")
        if not isinstance(table, dict):
            raise InvalidTable("Glue's answer has no table")
        return table

    def _update(
        self, path: Levels, table: Mapping[str, Any], *, changes: Mapping[str, str], leaves_out: str = ""
    ) -> None:
        version = table.get("VersionId")
        if not version:
            raise UnsupportedOperation(
                "the catalog names no versions of tables, without which a commit of another client could be lost: stop"
                " the table's writers, or drop it there without purge"
            )
        parameters = {key: value for key, value in (table.get("Parameters") or {}).items() if key != leaves_out}
        entry = {key: table[key] for key in _INPUT if key in table} | {"Parameters": {**parameters, **changes}}
        arguments: dict[str, object] = {"TableInput": entry, "VersionId": version, "SkipArchive": True}
        self._call("update_table", {"DatabaseName": path[0], **arguments}, changes=True)

    def _pages(
        self, name: str, field: str, *, arguments: Mapping[str, object] | None = None
    ) -> Iterator[Mapping[str, Any]]:
        """Yield the entries of all pages. A source that repeats a page token is not followed for ever."""
        token, seen_tokens = None, set[str]()
        for _ in range(PAGES_MAX):
            answer = self._call(name, {**(arguments or {}), **({} if token is None else {"NextToken": token})})
            yield from (each for each in answer.get(field) or () if isinstance(each, dict) and "Name" in each)
            token = answer.get("NextToken")
            if not token or token in seen_tokens:
                return
            seen_tokens.add(token)

    def _call(self, method: str, arguments: Mapping[str, object], *, changes: bool = False) -> Mapping[str, Any]:
        try:
            answer: Mapping[str, Any] = getattr(self._client, method)(**self._account, **arguments)
        except ClientError as error:
            raise self._client_error(error, changes=changes) from error
        except NoCredentialsError as error:
            raise SourceRefused(f"{self.label} needs credentials: AWS's environment has none") from error
        except (ConnectionError, HTTPClientError) as error:
            text = f"{self.label} does not answer: {_short(error)}"
            raise StateUnknown(text) if changes else SourceFailed(text) from error
        except (BotoCoreError, ValueError) as error:
            raise SourceRefused(f"{self.label} refuses: {_short(error)}") from error
        return answer

    def _client_error(self, error: ClientError, *, changes: bool) -> LimnosError:
        code = str(error.response.get("Error", {}).get("Code", ""))
        if code == "EntityNotFoundException":
            return NotFound("it does not exist there", kind="table")
        if code in _CONFLICTS:
            return CommitConflict("another client committed to it meanwhile")
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        if changes and status >= 500:
            return StateUnknown(f"{self.label} failed, and may have made the change: {_short(error)}")
        kind = SourceRefused if code in _REFUSALS else SourceFailed
        return kind(f"{self.label} {'refuses' if kind is SourceRefused else 'failed'}: {_short(error)}")


def _kind_of(table: Mapping[str, Any]) -> EntryKind:
    parameters = table.get("Parameters") or {}
    is_iceberg = str(parameters.get(TABLE_TYPE, "")).lower() == ICEBERG
    return "table" if is_iceberg or _is_closed(table) else "other"


def _is_closed(table: Mapping[str, Any]) -> bool:
    return bool((table.get("Parameters") or {}).get(TABLE_TYPE) == CLOSED)


def _entry_of(table: Mapping[str, Any]) -> CatalogEntry:
    kind = _kind_of(table)
    if kind == "other":
        word = quote_word(str(table.get("TableType") or ""))
        return CatalogEntry(kind, note=f"an object of Glue without Iceberg metadata{f' ({word})' if word else ''}")
    is_closed = _is_closed(table)
    location = table["Parameters"].get(CLOSED_METADATA if is_closed else METADATA)
    if not isinstance(location, str) or not location:
        raise InvalidTable(f"Glue has no {METADATA} of it")
    return CatalogEntry(kind, location, is_closed=is_closed)


def _short(error: Exception) -> str:
    return _SAFE.sub("?", " ".join(str(error).split()))[:300]
