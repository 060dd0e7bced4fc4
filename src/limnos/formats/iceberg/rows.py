# SPDX-License-Identifier: Apache-2.0
"""An indexed copy-on-write list of JSON objects, for a commit: finds, adds, replaces and removes rows by id.

Must not know the meaning of rows. A commit may have thousands of updates for a list of thousands of rows. So after
`SCANS_MAX` linear searches by id, an index is built. The first change copies the list; the given list is never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator

from limnos.formats.iceberg.encoded_rows import EncodedRows, KnownIds
from limnos.formats.iceberg.json_types import Json, hashable

SCANS_MAX = 4
"""The number of linear searches before an index is built. Most commits search for one row."""


class DocumentRows:
    """The objects of one list of the document, such as `schemas`, in order.

    Ids are integers or strings; a row whose id has another type cannot be found.
    """

    __slots__ = (
        "_appended",
        "_contents",
        "_highest",
        "_id_key",
        "_known",
        "_places",
        "_removed_count",
        "_rows",
        "_scans",
        "changed",
        "given",
        "is_grown",
    )

    def __init__(self, rows: list[Json], id_key: str) -> None:
        self.given = rows
        self.is_grown = True
        """Whether the list begins with all given rows, followed by the appended ones."""
        self._known = rows.known if isinstance(rows, EncodedRows) else None
        self._appended: set[object] = set()
        self._rows: list[Json | None] = rows  # type: ignore[assignment]  # copied before the first change
        self._id_key = id_key
        self._places: dict[object, list[int]] | None = None
        self._contents: dict[Hashable, int] | None = None
        self._scans = 0
        self._removed_count = 0
        self._highest: int | None = None
        self.changed = False

    def __len__(self) -> int:
        return len(self._rows) - self._removed_count

    def __iter__(self) -> Iterator[Json]:
        return (row for row in self._rows if row is not None)

    @property
    def known(self) -> KnownIds | None:
        """The ids of snapshots before the first change, if the document has them."""
        return self._known

    def to_list(self) -> list[Json]:
        """Return all rows as a list, to be written into the document."""
        return self._rows if not self._removed_count else list(self)  # type: ignore[return-value]  # no row was removed

    def find(self, expected: int | str) -> Json | None:
        """Return the last row with an id; None if there is none."""
        if self._known is not None and expected not in self._known.ids and expected not in self._appended:
            return None
        if self._places is None and self._scans < SCANS_MAX:
            self._scans += 1
            id_key = self._id_key  # scan from the end: the newest row is the likeliest
            return next((row for row in reversed(self._rows) if row is not None and row.get(id_key) == expected), None)
        positions = self._index().get(expected)
        return self._rows[positions[-1]] if positions else None

    def append(self, row: Json, *, content: Hashable = None) -> None:
        """Append a row; `content` is the key by which `same` finds the row."""
        self._copy_once()
        number, place = row.get(self._id_key), len(self._rows)
        if self._known is not None:
            self._appended.add(hashable(number))
        if self._places is not None and isinstance(number, (int, str)):
            self._places.setdefault(number, []).append(place)
        if self._contents is not None:
            self._contents.setdefault(content, place)
        if self._highest is not None and isinstance(number, int):
            self._highest = max(self._highest, number)
        self._rows.append(row)

    def replace(self, expected: int | str, row: Json) -> bool:
        """Replace each row with this id by `row`. Returns False if there is none."""
        positions = self._index().get(expected)
        if not positions:
            return False
        self._copy_once()
        self.is_grown = False
        for place in positions:
            self._rows[place] = row
        return True

    def remove(self, requested: Iterable[int | str]) -> bool:
        """Remove all rows with these ids. Returns False if there are none."""
        index = self._index()
        positions = [place for one in requested for place in index.pop(one, ())]
        if positions:
            self._copy_once()
            self.is_grown = False
            self._removed_count += len(positions)
            for place in positions:
                self._rows[place] = None
        return bool(positions)

    def next_id(self, first: int) -> int:
        """Return an integer id greater than all ids that the list has, or had earlier in this commit; `first` for an
        empty list.
        """
        if self._highest is None:
            numbers = [row.get(self._id_key) for row in self]
            self._highest = max((one for one in numbers if isinstance(one, int)), default=first - 1)
        return max(first, self._highest + 1)

    def find_same(self, content: Hashable, content_of: Callable[[Json], Hashable]) -> Json | None:
        """Return the first row whose key by `content_of` equals `content`; None if there is none.

        `content_of` must be the same function at each call.
        """
        if self._contents is None:
            self._contents = {}
            for index, row in enumerate(self._rows):
                if row is not None:
                    self._contents.setdefault(content_of(row), index)
        known = self._contents.get(content)
        if known is None:
            return None
        _rows = self._rows[known]
        if _rows is None:
            del self._contents[content]  # the row was removed, so an equal one may be appended
        return _rows

    def _copy_once(self) -> None:
        if not self.changed:
            self.changed = True
            self._rows = list(self._rows)

    def _index(self) -> dict[object, list[int]]:
        if self._places is None:
            self._places = {}
            for index, row in enumerate(self._rows):
                number = None if row is None else row.get(self._id_key)
                if isinstance(number, (int, str)):
                    self._places.setdefault(number, []).append(index)
        return self._places
