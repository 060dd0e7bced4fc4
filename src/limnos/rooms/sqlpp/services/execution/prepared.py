# SPDX-License-Identifier: Apache-2.0
"""Prepared statements: a cache of parsed texts, and of bound queries that depend only on their text.

A bound query is cached only if its binding needed no lookup in the tree, and if it uses neither parameters nor the time
of its request. So it is the same for every caller and revision. Access to its data is decided at each execution.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from limnos.names.path import Levels
from limnos.rooms.sqlpp.language import BoundQuery, ParsedStatement
from limnos.rooms.sqlpp.language.errors import TextPosition
from limnos.rooms.sqlpp.language.scans import ScanRequirement
from limnos.services.request.concurrency.last_used import LastUsed
from limnos.services.request.node_services import ComponentKey

KEPT_MAX: Final = 128
"""The maximum number of texts, and of queries, that a node caches; texts are short, so each tree has at most some
hundred kilobytes.
"""


class PlanKey(NamedTuple):
    """The cache key of a bound query: the text of its statement, its position, the active dataverse, and whether it has
    SQL's meaning.
    """

    text: str
    at: TextPosition
    dataverse: Levels
    sql_compat: bool = False


class ReadyQuery(NamedTuple):
    """A bound query with the metadata that it reads, ready for execution."""

    query: BoundQuery
    metadata: tuple[tuple[Levels, str], ...]
    """The metadata datasets that it reads, and the dataset resources that it needs."""
    numbered: tuple[BoundQuery, tuple[ScanRequirement, ...]] | None = None
    """The query with numbered scans, and the requirement of each; None if they are computed when it runs."""

    @property
    def reads_data(self) -> bool:
        """Whether the query reads datasets besides those of the dataverse `Metadata`."""
        return len(self.metadata) < len(self.query.reads)


class PreparedStatements:
    """The caches of parsed statements and bound queries of a node."""

    def __init__(self, count_max: int = KEPT_MAX) -> None:
        self.parsed: LastUsed[str, tuple[ParsedStatement, ...]] = LastUsed(count_max)
        self.queries: LastUsed[PlanKey, ReadyQuery] = LastUsed(count_max)


PREPARED: ComponentKey[PreparedStatements] = ComponentKey("prepared statements", lambda _: PreparedStatements())
