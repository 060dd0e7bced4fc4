"""Kinds of object: the stored number of each, where it lies and what form it has.

May import nothing but the standard library. Numbers are stored: never change or reuse one. What rooms must know about a kind beyond
that stands in its row of `kind_table`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum
from typing import Final, Self


class Home(Enum):
    """What an object lies in. Its changes are on the clock of that zone."""

    SERVER = "server"
    METALAKE = "metalake"
    CATALOG = "catalog"


class Form(Enum):
    """What kind of thing it is in the house of names.

    A container holds nodes. A leaf lies in a namespace. What is apart lies in the metalake, beside the tree, and can be
    owned like a leaf. A part has no row of its own. A principal is whom rights are given to; a credential shows who asks.
    """

    CONTAINER = "container"
    LEAF = "leaf"
    APART = "apart"
    PART = "part"
    PRINCIPAL = "principal"
    CREDENTIAL = "credential"


class Kind(IntEnum):
    """What a node, or another securable object, is: number, where it lies, what form it has; a row of `node` or not."""

    home: Home
    form: Form
    is_node: bool
    """It is a row of `node`; what is not has a table of its own, or none."""

    def __new__(cls, number: int, home: Home, form: Form, is_node: bool = True) -> Self:  # noqa: FBT001, FBT002 - a row of a table
        """A kind is its number, so it can be stored and compared as one."""
        kind = int.__new__(cls, number)
        kind._value_ = number
        kind.home, kind.form, kind.is_node = home, form, is_node
        return kind

    METALAKE = 1, Home.SERVER, Form.CONTAINER
    CATALOG = 2, Home.METALAKE, Form.CONTAINER
    NAMESPACE = 3, Home.CATALOG, Form.CONTAINER
    TABLE = 4, Home.CATALOG, Form.LEAF
    VIEW = 5, Home.CATALOG, Form.LEAF
    FILESET = 6, Home.CATALOG, Form.LEAF
    TOPIC = 7, Home.CATALOG, Form.LEAF
    MODEL = 8, Home.CATALOG, Form.LEAF
    FUNCTION = 9, Home.CATALOG, Form.LEAF
    COLUMN = 10, Home.CATALOG, Form.PART, False
    TAG = 11, Home.METALAKE, Form.APART
    POLICY = 12, Home.METALAKE, Form.APART
    JOB_TEMPLATE = 13, Home.METALAKE, Form.APART
    JOB = 14, Home.METALAKE, Form.APART, False
    DATATYPE = 15, Home.CATALOG, Form.LEAF
    SYNONYM = 16, Home.CATALOG, Form.LEAF
    EXTERNAL_DATASET = 17, Home.CATALOG, Form.LEAF
    USER = 20, Home.METALAKE, Form.PRINCIPAL, False
    GROUP = 21, Home.METALAKE, Form.PRINCIPAL, False
    ROLE = 22, Home.METALAKE, Form.APART, False
    TOKEN = 23, Home.SERVER, Form.CREDENTIAL, False

    @property
    def word(self) -> str:
        """The word for messages and Gravitino types, in lower case: `job_template`; a namespace is `namespace` here."""
        return self.name.lower()


def _of(*forms: Form) -> tuple[Kind, ...]:
    return tuple(kind for kind in Kind if kind.form in forms)


KINDS: Final[Mapping[int, Kind]] = {kind.value: kind for kind in Kind}
"""Kinds by their stored numbers: looked up for every row, which `Kind(number)` does ten times as slowly."""

CONTAINERS: Final = _of(Form.CONTAINER)
LEAVES: Final = _of(Form.LEAF)
APART: Final = _of(Form.APART)
SECURABLE: Final = _of(Form.CONTAINER, Form.LEAF, Form.PART, Form.APART)
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
SOURCED: Final[Mapping[str, str]] = {
    POSTGRESQL_PROVIDER: "RELATIONAL",
    MYSQL_PROVIDER: "RELATIONAL",
    KAFKA_PROVIDER: "STREAM",
    REST_PROVIDER: "RELATIONAL",
    HIVE_PROVIDER: "RELATIONAL",
}
"""Providers whose catalogs show what an outside system has, with their type: what it has is no row of `node` until something hangs on it."""
FEDERATED: Final = frozenset({REST_PROVIDER})
"""Those of them that show another Iceberg catalog: Iceberg's clients are served, and namespaces nest."""
