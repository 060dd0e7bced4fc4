# SPDX-License-Identifier: Apache-2.0
"""Settings of storage outside of the store: files and object stores of catalogs, and external systems of connectors."""

from __future__ import annotations

import json
import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field, PositiveFloat
from pydantic.functional_validators import AfterValidator, BeforeValidator

from limnos.config.secrets import SecretText
from limnos.config.section import SettingsSection
from limnos.config.values import Root, Words, check_root, split_listen
from limnos.model.sealed_secrets import parse_key
from limnos.model.secrets import Secret


def _warehouse(text: str) -> str:
    if re.fullmatch("(file:)?/+", text):
        raise _no_warehouse(text, "it is the root of the file system, which contains all other files")
    if re.fullmatch("[a-z0-9]+:/*", text):
        raise _no_warehouse(text, "it names no directory" if text.startswith("file:") else "it names no bucket")
    try:
        return check_root(text)
    except ValueError:
        raise _no_warehouse(text, "it is not a location") from None


def _no_warehouse(text: str, why: str) -> ValueError:
    """Return the error for a location that cannot be the warehouse.

    The reason is on a separate line, because the command line prints the cause and the advice separately.
    """
    return ValueError(
        f"'{text}' cannot be the warehouse\n"
        f"  why: {why}; write for example /srv/tables, file:///srv/tables or s3://bucket/tables"
    )


def _endpoint(text: str) -> str:
    parts = urlsplit(text)
    if not text.isprintable() or " " in text:  # urlsplit removes tabs and line ends
        raise ValueError(f"{text!a} has spaces or control characters: write http:// or https:// with a host")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.query:
        raise ValueError(f"'{text}' is not an endpoint; write http:// or https:// with a host and, if need be, a port")
    return text


def _key(secret: Secret) -> Secret:
    parse_key(secret.reveal())
    return secret


def _parse_storages(value: object) -> object:
    """Parse named storages, also from JSON. The message of a ValueError has no values, because they are secrets."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise ValueError("it is not JSON") from None
    if not isinstance(value, dict):
        raise ValueError("it is not a table of storages: write [storage.NAME] with properties in it")
    return {name: _storage(str(name), result) for name, result in value.items()}


def _storage(name: str, result: object) -> dict[str, str]:
    if not re.fullmatch("[A-Za-z0-9_][A-Za-z0-9_-]{0,63}", name):
        raise ValueError(f"'{name[:100]}' is not a name of a storage: write letters, digits, _ and -")
    if not isinstance(result, dict) or not all(isinstance(text, str | bool | int) for text in result.values()):
        raise ValueError(f"storage '{name}' is not a table of properties with string values")
    results = {str(key): str(text).lower() if isinstance(text, bool) else str(text) for key, text in result.items()}
    if not results.get("locations", "").strip():
        raise ValueError(
            f"storage '{name}' has no 'locations': list the locations below which it may be used, as s3://bucket/path"
        )
    return results


class StorageSection(SettingsSection):
    """The files and object stores that the server allows. A catalog can allow less than this, but not more."""

    warehouse: Annotated[str, AfterValidator(_warehouse)] | None = None
    """Location of the tables of catalogs without their own warehouse, as `s3://bucket/path`. Unset: the directory
    `warehouse` in `server.data`.
    """
    allowed_roots: Annotated[tuple[Root, ...], Words] = ()
    """Locations below which catalogs may have tables, in addition to the warehouse in `server.data`; `s3://` is every
    bucket. Separated by commas.
    """
    allowed_endpoints: Annotated[tuple[Annotated[str, AfterValidator(_endpoint)], ...], Words] = ()
    """Endpoints of object stores that the server may connect to, in addition to those of the public clouds; separated
    by commas.
    """
    timeout_s: PositiveFloat = 20.0
    """The maximum time for one operation on a file, in seconds; after it the response is 503."""
    key_file: str | None = Field(default=None, min_length=1)
    """File of mode 600 with the keys that encrypt catalogs' secrets in the database, 32 bytes in base64 per line; the
    last one encrypts, all decrypt. Unset: `secrets.key` in `server.data`, which a server on SQLite creates itself; on
    PostgreSQL secrets are then not encrypted.
    """
    keys: Annotated[tuple[Annotated[SecretText, AfterValidator(_key)], ...], Words] = ()
    """The same keys without a file, separated by commas, for platforms that pass secrets in variables."""
    named: Annotated[dict[str, dict[str, SecretText]], BeforeValidator(_parse_storages)] = Field(default_factory=dict)
    """Storages that catalogs name by their property `storage`, in the file as `[storage.NAME]`: `locations`,
    `metalakes` (the names with which they were created), and properties as a catalog has them; in the environment as
    JSON.
    """


def _address(text: str) -> str:
    """Normalize the `HOST:PORT` of an external system: lower case, IPv6 hosts in brackets. Raises ValueError for port
    0.
    """
    host, port = split_listen(text)
    if port == 0:
        raise ValueError(
            f"'{text}' is not HOST:PORT with a port from 1 to 65535; write for example db.example.com:5432"
        )
    return f"[{host}]:{port}".lower() if ":" in host else f"{host}:{port}".lower()


class SourcesSection(SettingsSection):
    """External systems, such as databases and Kafka clusters, to which connector catalogs may connect."""

    allowed_addresses: Annotated[tuple[Annotated[str, AfterValidator(_address)], ...], Words] = ()
    """Addresses that catalogs of external systems may name, as `HOST:PORT`, separated by commas. Unset: none."""
    timeout_s: PositiveFloat = 10.0
    """The maximum time for one request to an external system, in seconds; after it the response is 502."""
