"""Kinds of object: the stored number of each, where it lies and what form it has.

May import nothing but the standard library. Numbers are stored: never change or reuse one. What rooms must know about a kind beyond
that stands in its row of `kind_table`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum
from typing import Final, Self


class ZoneKind(Enum):
    """What an object lies in. Its changes are on the clock of that zone."""

    SERVER = "server"
    METALAKE = "metalake"
    CATALOG = "catalog"


class KindGroup(Enum):
    """How objects of a kind are named and owned.

    A container holds other nodes. A leaf lies in a namespace. An apart object lies in the metalake, beside the tree, and has
    an owner like a leaf. A part has no row of its own. Rights are given to principals; a credential proves who asks.
    """

    CONTAINER = "container"
    LEAF = "leaf"
    APART = "apart"
    PART = "part"
    PRINCIPAL = "principal"
    CREDENTIAL = "credential"


class Kind(IntEnum):
    """What a node, or another securable object, is: number, where it lies, what form it has; a row of `node` or not."""

    home: ZoneKind
    form: KindGroup
    is_node: bool
    """It is a row of `node`; what is not has a table of its own, or none."""

    def __new__(cls, number: int, home: ZoneKind, form: KindGroup, is_node: bool = True) -> Self:  # noqa: FBT001, FBT002 - a row of a table
        """A kind is its number, so it can be stored and compared as one."""
        kind = int.__new__(cls, number)
        kind._value_ = number
        kind.home, kind.form, kind.is_node = home, form, is_node
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
    USER = 20, ZoneKind.METALAKE, KindGroup.PRINCIPAL, False
    GROUP = 21, ZoneKind.METALAKE, KindGroup.PRINCIPAL, False
    ROLE = 22, ZoneKind.METALAKE, KindGroup.APART, False
    TOKEN = 23, ZoneKind.SERVER, KindGroup.CREDENTIAL, False

    @property
    def word(self) -> str:
        """The word for messages and Gravitino types, in lower case: `job_template`; a namespace is `namespace` here."""
        return self.name.lower()


def _of(*forms: KindGroup) -> tuple[Kind, ...]:
    return tuple(kind for kind in Kind if kind.form in forms)


KINDS: Final[Mapping[int, Kind]] = {kind.value: kind for kind in Kind}
"""Kinds by their stored numbers: looked up for every row, which `Kind(number)` does ten times as slowly."""

CONTAINERS: Final = _of(KindGroup.CONTAINER)
NAMESPACE_OBJECTS: Final = _of(KindGroup.LEAF)
METALAKE_OBJECTS: Final = _of(KindGroup.APART)
SECURABLES: Final = _of(KindGroup.CONTAINER, KindGroup.LEAF, KindGroup.PART, KindGroup.APART)
"""What a rule, an owner or a tag may be about, as far as it is served."""

SCOPES: Final = (Kind.METALAKE, Kind.CATALOG)
"""What has a clock of its own for what lies in it, and is named at the start of a request."""

ROOT_ID = 0
"""Parent of every metalake; zone of the server itself."""


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
"""The name space that everything below one parent shares in a Lance catalog."""
TABLE_FORMATS: Final[Mapping[str, str]] = {ICEBERG_PROVIDER: "iceberg", GENERIC_PROVIDER: "lance"}
"""The format of the tables in a catalog of each provider; a node of kind TABLE says its own."""
SOURCE_PROVIDERS: Final[Mapping[str, str]] = {
    POSTGRESQL_PROVIDER: "RELATIONAL",
    MYSQL_PROVIDER: "RELATIONAL",
    KAFKA_PROVIDER: "STREAM",
    REST_PROVIDER: "RELATIONAL",
    HIVE_PROVIDER: "RELATIONAL",
}
"""Providers whose catalogs show what an outside system has, with their type: what it has is no row of `node` until something hangs on it."""
REST_PROVIDERS: Final = frozenset({REST_PROVIDER})
"""Those of them that show another Iceberg catalog: Iceberg's clients are served, and namespaces nest."""
