# SPDX-License-Identifier: Apache-2.0
"""Searches for nodes by name, id, uuid, tag or owner: reads of candidates, and maintenance of folded names.

Must not know rights: callers decide on each candidate. Each read has a limit. Case-folded names are those of
`names.folding`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from json import dumps
from typing import Final, NamedTuple

from limnos.model.kind_table import name_space_of
from limnos.model.kinds import CONTAINERS, SHARED_SPACE, Kind
from limnos.names.parts import fold
from limnos.store.sql import Load, Sql, Value
from limnos.store.transaction import StoreTransaction

LAST: Final = "\U0010ffff"
"""A character that sorts after every other character of a name."""
UNFOLDED_AT_ONCE: Final = 1_000


NAME_PARTS: Final = 4
"""The number of parts in which many nodes are read by name; a power of two. Each part is a short step of the loop."""
_SPREAD: Final = 40503
"""A factor that spreads consecutive ids, and those of equal distances, over the parts."""


class SearchCandidate(NamedTuple):
    """A live node that matches a search. `kind` is the stored code of its kind, `folded` its folded name."""

    id: int
    zone: int
    kind: int
    folded: str
    format: str
    parent: int = 0


class NarrowScope(NamedTuple):
    """The scope of a search among few objects: the children of `parents`, the children of `browsed` in the name spaces
    `spaces`, and the objects `ids`.
    """

    parents: frozenset[int]
    browsed: frozenset[int] = frozenset()
    ids: frozenset[int] = frozenset()
    spaces: tuple[str, ...] = ()


class NameRange(NamedTuple):
    """A range of folded names, from `low` (inclusive) to `high` (exclusive), in some zones and of some kinds."""

    low: str
    high: str
    zones: Sequence[int]
    kinds: Sequence[int]


def ids_subselect(name: str) -> tuple[str, str]:
    """Return the subselect over the ids in the JSON array parameter `name`, for PostgreSQL and for SQLite."""
    return (
        f"SELECT CAST(v AS bigint) FROM json_array_elements_text(CAST(:{name} AS json)) v",
        f"SELECT value FROM json_each(:{name})",
    )


def one_of(name: str, type_: str = "bigint") -> tuple[str, str]:
    """Return the condition that a column has a value of the JSON array parameter `name`, for PostgreSQL and for SQLite.

    For columns that filter rows. PostgreSQL compares each row with an array, and can use it as an index condition. With
    a subselect it would join, and read all rows before it returns the first.
    """
    return (
        f"= ANY (ARRAY(SELECT CAST(v AS {type_}) FROM json_array_elements_text(CAST(:{name} AS json)) v))",
        f"IN (SELECT value FROM json_each(:{name}))",
    )


FILTERS: Final = {
    **{f"of_{name}": one_of(name) for name in ("zones", "kinds", "parents", "browsed")},
    "of_spaces": one_of("spaces", "text"),
}
"""Conditions with the parameters of a search."""


def _sql(text: str) -> Sql:
    """Build a statement in which `{ids}` is a parameter with a JSON array of integers, and the names of `FILTERS` are
    conditions.
    """
    parts = {"ids": ids_subselect("ids")} | FILTERS
    return Sql(
        text.format(**{name: pair[0] for name, pair in parts.items()}),
        on_sqlite=text.format(**{name: pair[1] for name, pair in parts.items()}),
    )


COLUMNS: Final = "n.id, n.zone, n.kind, coalesce(n.folded, ''), n.format, n.parent_id"
"""The columns of a candidate."""
_SELECT = f"SELECT {COLUMNS} FROM node n"
BY_NAME = _sql(
    f"{_SELECT} WHERE n.zone {{of_zones}} AND n.folded >= :low AND n.folded < :high AND n.deleted = 0"
    " AND n.kind {of_kinds} LIMIT :limit"
)
"""The query has no order: sorting would read every match."""
BY_NAME_IN_PART = _sql(
    f"{_SELECT} WHERE n.zone {{of_zones}} AND n.folded >= :low AND n.folded < :high AND n.deleted = 0"
    f" AND n.kind {{of_kinds}} AND ((n.id * {_SPREAD}) >> 16) & {NAME_PARTS - 1} = :part LIMIT :limit"
)
"""A part of the same nodes, by id: an object is in one part, also if it is renamed or others are created meanwhile."""
BY_IDS = _sql(f"{_SELECT} WHERE n.id IN ({{ids}}) AND n.deleted = 0 ORDER BY n.id")
IN_NARROW_SCOPE = _sql(
    f"SELECT * FROM ({_SELECT} WHERE n.parent_id {{of_parents}} AND n.deleted = 0 UNION ALL"
    f" {_SELECT} WHERE n.parent_id {{of_browsed}} AND n.name_space {{of_spaces}} AND n.deleted = 0 LIMIT :limit) below"
    f" UNION ALL {_SELECT} WHERE n.id IN ({{ids}}) AND n.deleted = 0"
)
"""The query may return an object twice: a UNION would read all children of the parents before the first row."""
_CONTAINER_KINDS = ", ".join(str(int(kind)) for kind in sorted(CONTAINERS))
CONTAINERS_BELOW = _sql(
    "WITH RECURSIVE below(id) AS (SELECT n.id FROM node n WHERE n.id IN ({ids}) AND n.deleted = 0"
    f" AND n.kind IN ({_CONTAINER_KINDS})"
    " UNION SELECT c.id FROM below b JOIN node c ON c.parent_id = b.id AND c.name_space {of_spaces}"
    " AND c.kind = :kind AND c.deleted = 0) SELECT id FROM below LIMIT :limit"
)
BY_UUID = Sql(
    f"{_SELECT} JOIN document d ON d.node_id = n.id WHERE d.uuid = :uuid AND n.deleted = 0 ORDER BY n.id LIMIT 100"
)
TAGGED = Sql(
    "SELECT * FROM (SELECT object_id FROM tag_object WHERE tag_id = :tag ORDER BY object_id LIMIT :limit) o UNION"
    " SELECT * FROM (SELECT DISTINCT object_id FROM column_attachment WHERE attached_id = :tag"
    " ORDER BY object_id LIMIT :limit) c ORDER BY 1 LIMIT :limit"
)
VALUED = Sql("SELECT DISTINCT object_id FROM tag_value WHERE tag_id = :tag AND value = :value ORDER BY 1 LIMIT :limit")
OWNED = Sql("SELECT object_id FROM owner WHERE principal_id = :principal ORDER BY object_id LIMIT :limit")
UNFOLDED = Sql("SELECT id, name FROM node WHERE folded IS NULL LIMIT :limit")
FOLD = Sql("UPDATE node SET folded = :folded WHERE id = :id AND name = :name")


def names_read(name_range: NameRange, *, limit: int, part: int | None = None) -> Load[list[SearchCandidate]]:
    """Read up to `limit` nodes whose folded name is in a range, in no particular order.

    With `part`, from 0 to `NAME_PARTS` - 1, only those of a part of all ids.
    """
    params: dict[str, Value] = {
        "low": name_range.low,
        "high": name_range.high,
        "zones": dumps(list(name_range.zones)),
        "kinds": dumps(list(name_range.kinds)),
        "limit": limit,
    }
    rows = yield (BY_NAME, params) if part is None else (BY_NAME_IN_PART, params | {"part": part})
    return [SearchCandidate(*row) for row in rows]


def candidates_read(ids: Collection[int]) -> Load[list[SearchCandidate]]:
    """Read the live nodes with the given ids."""
    rows = yield BY_IDS, {"ids": dumps(sorted(ids))}
    return [SearchCandidate(*row) for row in rows]


def containers_below_read(ids: Collection[int], *, limit: int) -> Load[frozenset[int]]:
    """Read the ids of the containers among some objects, and of the namespaces below them, at most `limit`."""
    if not ids:
        return frozenset()
    spaces = dumps([name_space_of(Kind.NAMESPACE), SHARED_SPACE])
    rows = yield (
        CONTAINERS_BELOW,
        {
            "ids": dumps(sorted(ids)),
            "spaces": spaces,
            "kind": int(Kind.NAMESPACE),
            "limit": limit,
        },
    )
    return frozenset(row[0] for row in rows)


def narrow_read(scope: NarrowScope, *, limit: int) -> Load[list[SearchCandidate]]:
    """Read up to `limit` live nodes of a narrow scope, in no particular order."""
    rows = yield (
        IN_NARROW_SCOPE,
        {
            "parents": dumps(sorted(scope.parents)),
            "browsed": dumps(sorted(scope.browsed - scope.parents)),
            "ids": dumps(sorted(scope.ids)),
            "spaces": dumps(scope.spaces),
            "limit": limit,
        },
    )
    return [SearchCandidate(*row) for row in dict.fromkeys(rows)][:limit]


def uuid_read(uuid: str) -> Load[list[SearchCandidate]]:
    """Read up to 100 live nodes whose documents have the given UUID."""
    rows = yield BY_UUID, {"uuid": uuid}
    return [SearchCandidate(*row) for row in rows]


def tagged_read(tag_id: int, value: str | None, *, limit: int) -> Load[list[int]]:
    """Read up to `limit` ids of objects with a tag on them or on their columns; with `value`, only those where the tag
    has that value.
    """
    if value is None:
        rows = yield TAGGED, {"tag": tag_id, "limit": limit}
    else:
        rows = yield VALUED, {"tag": tag_id, "value": value, "limit": limit}
    return [row[0] for row in rows]


def owned_ids_read(principal_id: int, *, limit: int) -> Load[list[int]]:
    """Read up to `limit` ids of the objects that a principal owns, in order."""
    rows = yield OWNED, {"principal": principal_id, "limit": limit}
    return [row[0] for row in rows]


def names_fold(tx: StoreTransaction) -> int:
    """Fill in folded names that an older release left empty, at most `UNFOLDED_AT_ONCE`. Returns the number of rows
    that were read.
    """
    rows = tx.rows(UNFOLDED, {"limit": UNFOLDED_AT_ONCE})
    for node_id, name in rows:
        tx.count(FOLD, {"id": node_id, "name": name, "folded": fold(name)})
    return len(rows)
