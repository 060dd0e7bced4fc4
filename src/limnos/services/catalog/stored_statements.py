# SPDX-License-Identifier: Apache-2.0
"""Statements of a query language that a room has stored in records of tables and functions, as the kernel reads them.

Must not know the language. The room's manifest names the reader, which works while the room is off, so that datasets
keep their rules. Only a server on which the room is not installed has no reader.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Protocol, cast

from limnos.manifests.installed import installed_rooms
from limnos.manifests.manifest import load
from limnos.model.entities import Node


class DatasetRules(Protocol):
    """The changes that a commit may make to the table of a dataset with a primary key."""

    def broken_schema(self, *, before: Mapping[str, object], after: Mapping[str, object]) -> str | None:
        """Return the first part of the table that a schema change would break, such as `its column a`; None if there is
        none.
        """

    def broken_property(self, before: Mapping[str, str], after: Mapping[str, str]) -> str | None:
        """Return the first protected property that would change; None if there is none."""

    def takes_outside_writers(self, properties: Mapping[str, str]) -> bool:
        """Return whether other clients may write rows."""


class StoredStatements(Protocol):
    """Reads stored statements."""

    def dataset_rules(self, node: Node) -> DatasetRules | None:
        """Return the rules of a dataset; None for one without a primary key."""

    def function_parameters(self, node: Node) -> list[tuple[str, ...]]:
        """Return the names of the parameters in each statement of a function."""


@cache
def stored_statements() -> StoredStatements | None:
    """Return the reader of the installed room that has one; None without such a room."""
    references = [each.statements for each in installed_rooms().manifests if each.statements]
    return cast("StoredStatements", load(references[0])) if references else None
