"""Kinds of object in the tree and their stored numbers.

May import nothing but the standard library. Numbers are stored: never change or reuse one.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from functools import cache
from typing import Final


class Kind(IntEnum):
    """What a node, or another securable object, is."""

    METALAKE = 1
    CATALOG = 2
    NAMESPACE = 3
    TABLE = 4
    VIEW = 5
    FILESET = 6
    TOPIC = 7
    MODEL = 8
    FUNCTION = 9
    COLUMN = 10
    TAG = 11
    POLICY = 12
    JOB_TEMPLATE = 13
    JOB = 14
    USER = 20
    GROUP = 21
    ROLE = 22
    TOKEN = 23

    @property
    def word(self) -> str:
        """The word for messages and Gravitino types, in lower case: `job_template`; a namespace is `namespace` here."""
        return self.name.lower()


KINDS: Final[Mapping[int, Kind]] = {kind.value: kind for kind in Kind}
"""Kinds by their stored numbers: looked up for every row, which `Kind(number)` does ten times as slowly."""

ROOT_ID = 0
"""Parent of every metalake; zone of the server itself."""


GENERIC_PROVIDER = "lakehouse-generic"


@cache
def name_space_of(kind: Kind, provider: str = "") -> str:
    """Return the set of names that a kind shares under one parent.

    Iceberg catalogs: namespaces by themselves, tables with views, the others by kind. A `lakehouse-generic` (Lance)
    catalog has one for all, since Lance knows no two objects of one name under a namespace.
    """
    if kind <= Kind.CATALOG:
        return kind.word
    if provider == GENERIC_PROVIDER:
        return "object"
    return "table" if kind is Kind.VIEW else kind.word
