# SPDX-License-Identifier: Apache-2.0
"""A reader that runs during the pipeline, and must never see an intermediate state.

Job: read repeatedly how many rows two tables have, through PyIceberg, from a thread. May import `model` and PyIceberg;
it must not know of runs. The two tables of the demo have the same number of rows after every publication, and at no
other time.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from limnos.model.errors import LimnosError

if TYPE_CHECKING:
    from typing import Self

    from pyiceberg.catalog import Catalog

TABLES = (("raw", "nyc", "flights"), ("curated", "nyc", "delays"))
_PAUSE_S = 0.05


class InconsistentRead(LimnosError):
    """A reader saw one table of a run without the other."""

    code = "seen-in-between"


@dataclass(slots=True)
class ReaderTally:
    """How often each number of rows was read, if both tables had it; and the pairs that differed."""

    alike: Counter[int] = field(default_factory=Counter)
    unlike: list[tuple[int, int]] = field(default_factory=list)

    @property
    def looks(self) -> int:
        """The number of consistent pairs of reads."""
        return self.alike.total() + len(self.unlike)

    def __str__(self) -> str:
        states = ", then ".join(f"{rows:,}" for rows in sorted(self.alike))
        return f"{self.looks:,} looks at both tables: {states} rows in each, never one without the other"


class ConsistencyReader:
    """Reads for the body of a `with`; the result is in `seen`. Raises InconsistentRead at the end."""

    def __init__(self, catalog: Catalog) -> None:
        self.seen = ReaderTally()
        self._catalog = catalog
        self._stop = threading.Event()
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._look, name="reader", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._stop.set()
        self._thread.join(timeout=30)
        if raised[0] is not None:
            return
        if self._failed is not None:
            raise self._failed
        self._pair()  # once more, for the last publication
        if self.seen.unlike:
            raise InconsistentRead(f"A reader saw {self.seen.unlike[0]} rows in {TABLES}: a part of a run was visible.")

    def _look(self) -> None:
        try:
            while not self._stop.wait(_PAUSE_S):
                self._pair()
        except BaseException as error:
            self._failed = error

    def _pair(self) -> None:
        """Read one table, the other, and the first again: the pair counts only if the first is unchanged."""
        first, second, again = (self._rows(table) for table in (*TABLES, TABLES[0]))
        if first != again:
            return
        if first == second:
            self.seen.alike[first] += 1
        else:
            self.seen.unlike.append((first, second))

    def _rows(self, table: tuple[str, ...]) -> int:
        from pyiceberg.exceptions import NoSuchTableError

        try:
            snapshot = self._catalog.load_table(table).current_snapshot()
        except NoSuchTableError:
            return 0
        if snapshot is None or snapshot.summary is None:
            return 0
        return int(snapshot.summary["total-records"] or 0)
