"""Prepared statements: parsed texts, and bound queries that rest on their text alone, kept for whoever sends the same text again.

May import `sqlpp`, `names` and the request package. A bound query is kept only if nothing was asked of the tree of names to bind it, and it uses neither
parameters nor the moment of its request. So it says the same for every caller and at every revision; what it reads is read and decided each time.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from limnos.services.request.node_services import ComponentKey

if TYPE_CHECKING:
    from limnos.names.path import Levels
    from limnos.sqlpp import BoundQuery, ParsedStatement
    from limnos.sqlpp.errors import TextPosition
    from limnos.sqlpp.scans import ScanRequirement

K = TypeVar("K")
V = TypeVar("V")
KEPT_MAX: Final = 128
"""Texts, and queries, that a node keeps; each text is short, so a tree has some hundred kilobytes at most."""


class PlanKey(NamedTuple):
    """What a bound query depends on: the text of its statement, where that stands, and the dataverse in use."""

    text: str
    at: TextPosition
    dataverse: Levels


class ReadyQuery(NamedTuple):
    """A query ready to be worked out."""

    query: BoundQuery
    metadata: tuple[tuple[Levels, str], ...]
    """The datasets of the metadata dataverse that it reads, and what it asks of datasets themselves."""
    numbered: tuple[BoundQuery, tuple[ScanRequirement, ...]] | None = None
    """The query with its scans numbered, and what each needs; None where that is found out when it is worked out."""

    @property
    def reads_data(self) -> bool:
        """Whether it reads anything beside the metadata."""
        return len(self.metadata) < len(self.query.reads)


class LastUsed(Generic[K, V]):
    """The values that were used last, up to a number."""

    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self._kept: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def values(self) -> list[V]:
        """Return what is kept, the least recently used first."""
        return list(self._kept.values())

    def get(self, key: K) -> V | None:
        """Return a value, which counts as used; None when it is not kept."""
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def put(self, key: K, value: V) -> None:
        """Keep a value; the one that was not used for longest goes when there are too many."""
        self._kept[key] = value
        if len(self._kept) > self._count_max:
            self._kept.popitem(last=False)


class PreparedStatements:
    """What a node keeps of short statements."""

    def __init__(self, count_max: int = KEPT_MAX) -> None:
        self.parsed: LastUsed[str, tuple[ParsedStatement, ...]] = LastUsed(count_max)
        self.queries: LastUsed[PlanKey, ReadyQuery] = LastUsed(count_max)


PREPARED: ComponentKey[PreparedStatements] = ComponentKey("prepared statements", lambda _: PreparedStatements())
