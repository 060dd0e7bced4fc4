# SPDX-License-Identifier: Apache-2.0
"""Opens the catalogs of a migration. Each kind imports its library only here; a missing one is named with its extra.

Must not print, nor put a password into a message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from limnos.cli.extras import import_extra
from limnos.cli.failures import StoppedError, UsageError
from limnos.cli.migration.directory import TableDirectory
from limnos.cli.migration.moves import Source
from limnos.cli.migration.pointer_source import PointerSource
from limnos.model.errors import BadRequest, LimnosError, SourceRefused

if TYPE_CHECKING:
    from limnos.cli.migration.rest_catalog import RestCatalog


class ClosableSource(Source, Protocol):
    """A source with connections."""

    def close(self) -> None:
        """Close the connections."""


class PointerKind(NamedTuple):
    """A kind of catalog that stores locations of metadata files: its module, extras, class, and arguments."""

    module: str
    extras: str
    class_name: str
    arguments: Callable[[str | None, str | None], Mapping[str, str | None]]
    """The arguments of the class, from the warehouse and the token."""
    hint: str


POINTER_KINDS: Final[Mapping[str, PointerKind]] = {
    "jdbc-catalog": PointerKind(
        module="limnos.sources.catalogs.jdbc_catalog",
        extras="server,postgres",
        class_name="JdbcCatalog",
        arguments=lambda warehouse, token: {"name": warehouse, "password": token},
        hint="check the user, and give the password in LIMNOS_SOURCE_TOKEN",
    ),
    "hive": PointerKind(
        module="limnos.sources.catalogs.hive_catalog",
        extras="server,hive",
        class_name="HiveCatalog",
        arguments=lambda *_: {},
        hint="check the address",
    ),
    "glue": PointerKind(
        module="limnos.sources.catalogs.glue_catalog",
        extras="server,s3",
        class_name="GlueCatalog",
        arguments=lambda warehouse, _: {"account": warehouse},
        hint="check the credentials in AWS's environment",
    ),
}
"""The catalogs that store locations of metadata files."""


def open_source(kind: str, uri: str, *, token: str | None, warehouse: str | None, timeout_s: float) -> ClosableSource:
    """Open the source of a migration. Raises UsageError for a wrong address, StoppedError if it cannot be used."""
    if kind == "directory":
        return TableDirectory(uri)
    if kind not in POINTER_KINDS:
        return open_catalog(uri, token=token, warehouse=warehouse, timeout_s=timeout_s)
    pointer = POINTER_KINDS[kind]
    catalog_class: Callable[..., Any] = getattr(import_extra(pointer.module, extra=pointer.extras), pointer.class_name)
    try:
        return PointerSource(catalog_class(uri, timeout_s=timeout_s, **pointer.arguments(warehouse, token)))
    except BadRequest as error:
        raise UsageError(error.message) from error
    except SourceRefused as error:
        raise StoppedError(error.message, code="denied", hint=pointer.hint) from error
    except LimnosError as error:
        raise StoppedError(error.message, code="unavailable", hint="check the address, and run it again") from error


def open_catalog(
    uri: str,
    *,
    token: str | None,
    warehouse: str | None,
    timeout_s: float,
    user: str | None = None,
    ca_file: str | None = None,
    credential_flag: str = "--source-token",
) -> RestCatalog:
    """Open a catalog by Iceberg REST. Imports HTTP and TLS, which a wrong flag does not need.

    `credential_flag` names the flag to give if the catalog refuses the credential.
    """
    from limnos.cli.migration.rest_catalog import RestCatalog

    return RestCatalog(
        uri,
        token=token,
        user=user,
        warehouse=warehouse,
        timeout_s=timeout_s,
        ca_file=ca_file,
        credential_flag=credential_flag,
    )
