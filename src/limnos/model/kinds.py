# SPDX-License-Identifier: Apache-2.0
"""Kinds of objects: the stored code of each kind, its type of zone, and its group.

Must not know packages. Codes are stored: never change or reuse one. Everything else that packages must know about a
kind is in its row of `kind_table`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum, unique
from typing import Final, Self


class ZoneKind(Enum):
    """The type of zone that objects of a kind belong to. Changes of the object advance the clock of that zone."""

    SERVER = "server"
    METALAKE = "metalake"
    CATALOG = "catalog"


class KindGroup(Enum):
    """The group of a kind, which determines how its objects are named and whether they have owners.

    `CONTAINER`: contains nodes. `LEAF`: is in a namespace. `APART`: a metalake object, outside of the tree, with an
    owner. `PART`: has no row of its own. `PRINCIPAL`: can be granted roles. `CREDENTIAL`: authenticates a request.
    """

    CONTAINER = "container"
    LEAF = "leaf"
    APART = "apart"
    PART = "part"
    PRINCIPAL = "principal"
    CREDENTIAL = "credential"


@unique
class Kind(IntEnum):
    """The kind of a node or of another securable object: its stored code, type of zone and group, and whether its
    objects are rows of the table `node`.
    """

    home: ZoneKind
    form: KindGroup
    is_node: bool
    """Whether it is a row of `node`. Other kinds have a table of their own, or none."""
    is_declared: bool
    """Whether everything else about it follows from its line in `declared_kinds`."""

    def __new__(
        cls,
        number: int,
        home: ZoneKind,
        form: KindGroup,
        is_node: bool = True,  # noqa: FBT001, FBT002 - a row of a table
        is_declared: bool = False,  # noqa: FBT001, FBT002 - a row of a table
    ) -> Self:
        """Create a member whose value is its code, so that it is stored and compared as an integer."""
        kind = int.__new__(cls, number)
        kind._value_ = number
        kind.home, kind.form, kind.is_node, kind.is_declared = home, form, is_node, is_declared
        return kind

    METALAKE = 1, ZoneKind.SERVER, KindGroup.CONTAINER
    CATALOG = 2, ZoneKind.METALAKE, KindGroup.CONTAINER
    NAMESPACE = 3, ZoneKind.CATALOG, KindGroup.CONTAINER
    TABLE = 4, ZoneKind.CATALOG, KindGroup.LEAF
    VIEW = 5, ZoneKind.CATALOG, KindGroup.LEAF
    FILESET = 6, ZoneKind.CATALOG, KindGroup.LEAF
    TOPIC = 7, ZoneKind.CATALOG, KindGroup.LEAF
    MODEL = 8, ZoneKind.CATALOG, KindGroup.LEAF
    FUNCTION = 9, ZoneKind.CATALOG, KindGroup.LEAF
    COLUMN = 10, ZoneKind.CATALOG, KindGroup.PART, False
    TAG = 11, ZoneKind.METALAKE, KindGroup.APART
    POLICY = 12, ZoneKind.METALAKE, KindGroup.APART
    JOB_TEMPLATE = 13, ZoneKind.METALAKE, KindGroup.APART
    JOB = 14, ZoneKind.METALAKE, KindGroup.APART, False
    DATATYPE = 15, ZoneKind.CATALOG, KindGroup.LEAF
    SYNONYM = 16, ZoneKind.CATALOG, KindGroup.LEAF
    EXTERNAL_DATASET = 17, ZoneKind.CATALOG, KindGroup.LEAF
    DASHBOARD = 18, ZoneKind.CATALOG, KindGroup.LEAF, True, True
    USER = 20, ZoneKind.METALAKE, KindGroup.PRINCIPAL, False
    GROUP = 21, ZoneKind.METALAKE, KindGroup.PRINCIPAL, False
    ROLE = 22, ZoneKind.METALAKE, KindGroup.APART, False
    TOKEN = 23, ZoneKind.SERVER, KindGroup.CREDENTIAL, False

    @property
    def word(self) -> str:
        """The name in lower case, as messages and Gravitino's types spell it: `job_template`.

        A namespace is `namespace`, not Gravitino's `schema`.
        """
        return self.name.lower()


def _of(*forms: KindGroup) -> tuple[Kind, ...]:
    return tuple(kind for kind in Kind if kind.form in forms)


KINDS: Final[Mapping[int, Kind]] = {kind.value: kind for kind in Kind}
"""Kinds by their stored numbers. Looked up for every row; the call `Kind(number)` is ten times slower."""

CONTAINERS: Final = _of(KindGroup.CONTAINER)
NAMESPACE_OBJECTS: Final = _of(KindGroup.LEAF)
METALAKE_OBJECTS: Final = _of(KindGroup.APART)
SECURABLES: Final = _of(KindGroup.CONTAINER, KindGroup.LEAF, KindGroup.PART, KindGroup.APART)
"""Kinds of objects that can have grants, an owner or tags."""

SCOPES: Final = (Kind.METALAKE, Kind.CATALOG)
"""Kinds whose objects are zones with a clock, named at the start of a request."""

ROOT_ID = 0
"""The parent id of every metalake, and the zone id of the server itself."""


ICEBERG_PROVIDER = "lakehouse-iceberg"
GENERIC_PROVIDER = "lakehouse-generic"
FILESET_PROVIDER = "fileset"
MODEL_PROVIDER = "model"
MESSAGING_PROVIDER = "messaging"
POSTGRESQL_PROVIDER = "jdbc-postgresql"
MYSQL_PROVIDER = "jdbc-mysql"
KAFKA_PROVIDER = "kafka"
REST_PROVIDER = "iceberg-rest"
HIVE_PROVIDER = "hive"
SHARED_SPACE = "object"
"""The name space that all kinds share under one parent in a Lance catalog."""
TABLE_FORMATS: Final[Mapping[str, str]] = {ICEBERG_PROVIDER: "iceberg", GENERIC_PROVIDER: "lance"}
"""The format of tables in catalogs of each provider."""
SOURCE_PROVIDERS: Final[Mapping[str, str]] = {
    POSTGRESQL_PROVIDER: "RELATIONAL",
    MYSQL_PROVIDER: "RELATIONAL",
    KAFKA_PROVIDER: "STREAM",
    REST_PROVIDER: "RELATIONAL",
    HIVE_PROVIDER: "RELATIONAL",
}
"""Providers of connector catalogs, with their type.

An external object gets a placeholder node only when it is needed.
"""
REST_PROVIDERS: Final = frozenset({REST_PROVIDER})
"""Connector providers that show another Iceberg catalog: Iceberg clients are served, and namespaces nest."""
FURTHER_PROVIDER: Final = "x-"
"""The beginning of the providers that other packages add. Names without it are the product's, or Gravitino's."""


def is_source_provider(provider: str) -> bool:
    """Return whether catalogs of a provider show an external system, also if its connector is not installed."""
    return provider in SOURCE_PROVIDERS or provider.startswith(FURTHER_PROVIDER)
