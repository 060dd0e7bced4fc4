# SPDX-License-Identifier: Apache-2.0
"""The full-text index: words of objects, the revision up to which each zone is indexed, and the node that updates it.

Must not know rights or word forms: words are given as strings, separated by spaces. On SQLite a full-text table (FTS5)
indexes these strings, on PostgreSQL `tsvector` columns. Only ids come from the index: callers read names, paths and
rights from the view.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import pairwise
from json import dumps
from typing import Final, NamedTuple

import msgspec

from limnos.model.kinds import Kind
from limnos.store.objects.name_search import COLUMNS, FILTERS, SearchCandidate, ids_subselect
from limnos.store.objects.nodes import DATA_ONLY
from limnos.store.snapshots import StoreSnapshot
from limnos.store.sql import Load, Sql, Value
from limnos.store.transaction import Writes


class IndexedText(NamedTuple):
    """The words of one object: of its name, its columns and its comment."""

    object_id: int
    zone: int
    name: str
    columns: str
    comment: str


CACHED_FIELDS: Final = 512
"""The number of fields of objects whose entries are cached: a few MiB, with `CACHED_FIELD_CHARS`."""
CACHED_FIELD_CHARS: Final = 2_000
IDS_AT_ONCE: Final = 10_000
SCAN_BEGIN: Final = 0
"""The position of a scan before its first object."""


class ZoneProgress(NamedTuple):
    """The indexing progress of a zone.

    `newest` is the zone's newest revision, `epoch` that of the store; `revision` and `indexed_epoch` are None before
    the first indexing. `scan_after` is set while all objects of the zone are indexed again.
    """

    zone: int
    newest: int
    pruned_to: int
    epoch: int
    indexed_epoch: int | None
    revision: int | None
    scan_after: int | None

    @property
    def is_lost(self) -> bool:
        """Whether the changes since the position are no longer available, so that the zone must be indexed again from
        all objects.
        """
        return self.revision is None or self.indexed_epoch != self.epoch or self.revision < self.pruned_to

    @property
    def behind(self) -> int:
        """The number of changes that are not indexed yet; all changes while the zone is indexed again."""
        if self.is_lost or self.scan_after is not None or self.revision is None:
            return max(1, self.newest)
        return self.newest - self.revision


_PROGRESS = (
    "SELECT c.zone, c.revision, c.pruned_to, s.epoch, p.epoch, p.revision, p.scan_after"
    " FROM clock c CROSS JOIN store s LEFT JOIN search_position p ON p.zone = c.zone"
)
BEHIND = Sql(
    f"{_PROGRESS} WHERE c.zone <> 0 AND (p.revision IS NULL OR p.revision <> c.revision OR p.epoch <> s.epoch"
    " OR p.scan_after IS NOT NULL) ORDER BY c.zone LIMIT :limit"
)
PROGRESS_OF = Sql(
    f"{_PROGRESS} WHERE c.zone IN ({ids_subselect('zones')[0]})",
    on_sqlite=f"{_PROGRESS} WHERE c.zone IN ({ids_subselect('zones')[1]})",
)
_NODE_KINDS = ", ".join(str(int(kind)) for kind in Kind if kind.is_node)
CHANGED = Sql(
    "SELECT DISTINCT node_id FROM change WHERE zone = :zone AND revision > :since AND revision <= :until"
    f" AND kind IN ({_NODE_KINDS}) AND operation IN ('create', 'alter', 'commit', 'move', 'drop', 'undrop')"
    f" AND NOT (operation = 'commit' AND coalesce(new_name, '') = '{DATA_ONLY}')"
)
SCAN = Sql("SELECT id FROM node WHERE zone = :zone AND deleted = 0 AND id > :after ORDER BY id")
"""The objects of a zone in the order of ids: that of their rows, of their documents and of the rows of the index. It
sorts the whole zone, so it is read once for a scan, in a thread.
"""
TEXTS = Sql(
    f"SELECT object_id, zone, name, columns, comment FROM search_text WHERE object_id IN ({ids_subselect('ids')[0]})",
    on_sqlite="SELECT object_id, zone, name, columns, comment FROM search_text WHERE object_id IN"
    f" ({ids_subselect('ids')[1]})",
)
_HITS_REST = "n.zone {of_zones} AND n.kind {of_kinds} LIMIT :limit"


def _hits(column: str) -> Sql:
    """Build the full-text query over a column of the index.

    PostgreSQL uses `:query`, SQLite `:match`; a caller passes both parameters to either backend. On PostgreSQL
    `OFFSET 0` makes it look up the node of each match: its planner would scan all nodes for a frequent word, because it
    assumes that the matches are spread evenly.
    """
    postgres, sqlite = (_HITS_REST.format(**{name: pair[place] for name, pair in FILTERS.items()}) for place in (0, 1))
    return Sql(
        f"SELECT n.* FROM search_text t CROSS JOIN LATERAL (SELECT {COLUMNS} FROM node n WHERE n.id = t.object_id"
        f" AND n.deleted = 0 OFFSET 0) n WHERE t.{column} @@ CAST(:query AS tsquery)"
        f" AND CAST(:match AS text) <> '' AND {postgres}",
        on_sqlite=(
            f"SELECT {COLUMNS} FROM search_words w CROSS JOIN node n ON n.id = w.rowid WHERE search_words MATCH :match"
            f" AND :query <> '' AND n.deleted = 0 AND {sqlite}"
        ),
    )


IN_NAMES, IN_ALL = _hits("name_vector"), _hits("all_vector")
_LEXEMES = "array_to_tsvector(array_remove(string_to_array({text}, ' '), ''))"
_NAME, _ALL = "r.v ->> 5", "concat_ws(' ', r.v ->> 5, r.v ->> 6, r.v ->> 7)"
_ROWS = "jsonb_array_elements(CAST(:rows AS jsonb)) AS r(v)"
"""Rows of `_rows`, by place: object names would be looked up anew for each value."""


def _each(*places: int) -> str:
    return f"{', '.join(f'value ->> {column}' for column in places)} FROM json_each(:rows)"


_ENTRY: Final = (0, 5, 6, 7)
PUT = Sql(
    "INSERT INTO search_text (object_id, zone, name, columns, comment, name_vector, all_vector)"
    " SELECT CAST(r.v ->> 0 AS bigint), CAST(r.v ->> 1 AS bigint), r.v ->> 2, r.v ->> 3, r.v ->> 4,"
    f" {_LEXEMES.format(text=_NAME)}, {_LEXEMES.format(text=_ALL)} FROM {_ROWS}",
    on_sqlite=f"INSERT INTO search_text (object_id, zone, name, columns, comment) SELECT {_each(0, 1, 2, 3, 4)}",
)
DELETE = Sql(
    f"DELETE FROM search_text WHERE object_id IN (SELECT CAST(r.v ->> 0 AS bigint) FROM {_ROWS})",
    on_sqlite=f"DELETE FROM search_text WHERE object_id IN (SELECT {_each(0)})",
)
FTS_PUT: Final = f"INSERT INTO search_words (rowid, name, columns, comment) SELECT {_each(*_ENTRY)}"
FTS_DELETE: Final = (
    f"INSERT INTO search_words (search_words, rowid, name, columns, comment) SELECT 'delete', {_each(*_ENTRY)}"
)
_NO_CHANGE = "UPDATE search_text SET zone = zone WHERE CAST(:rows AS text) = '' AND FALSE"
INDEX_PUT, INDEX_DELETE = Sql(_NO_CHANGE, on_sqlite=FTS_PUT), Sql(_NO_CHANGE, on_sqlite=FTS_DELETE)
"""The statements that add objects to the full-text table of SQLite and remove them. On PostgreSQL they change nothing:
the vectors are in the row. Each writes all rows at once: a statement releases Python's lock once, not for each row.
"""
WORDS_PUT = Sql(
    "INSERT INTO search_word (word) SELECT v FROM json_array_elements_text(CAST(:words AS json)) v WHERE TRUE ON"
    " CONFLICT DO NOTHING",
    on_sqlite="INSERT INTO search_word (word) SELECT value FROM json_each(:words) WHERE TRUE ON CONFLICT DO NOTHING",
)
_SINGLE_MAX: Final = "\u04ff"
"""The last character of the Cyrillic block: up to it, all versions of Unicode agree on which characters are letters."""
WORDS_FORGET = Sql(
    "DELETE FROM search_word WHERE word IN (SELECT v FROM json_array_elements_text(CAST(:words AS json)) v) AND NOT"
    " EXISTS (SELECT 1 FROM search_text t WHERE t.all_vector @@ CAST(quote_literal(search_word.word) || ':*' AS"
    " tsquery))",
    on_sqlite=(
        "DELETE FROM search_word WHERE word IN (SELECT value FROM json_each(:words)) AND NOT EXISTS"
        " (SELECT 1 FROM search_words WHERE search_words MATCH '\"' || search_word.word || '\" *')"
    ),
)
WORDS_KNOWN = Sql(
    "SELECT word FROM search_word WHERE word IN (SELECT v FROM json_array_elements_text(CAST(:words AS json)) v)",
    on_sqlite="SELECT word FROM search_word WHERE word IN (SELECT value FROM json_each(:words))",
)
POSITION_PUT = Sql(
    "INSERT INTO search_position (zone, epoch, revision, scan_after) VALUES (:zone, :epoch, :revision, :scan_after)"
    " ON CONFLICT (zone) DO UPDATE SET"
    " epoch = excluded.epoch, revision = excluded.revision, scan_after = excluded.scan_after"
)
POSITION = Sql("SELECT epoch, revision, scan_after FROM search_position WHERE zone = :zone")
LEASE = Sql(
    "INSERT INTO search_lease (one, holder, leased_until) VALUES (1, :holder, :until) ON CONFLICT (one) DO UPDATE"
    " SET holder = excluded.holder, leased_until = excluded.leased_until"
    " WHERE search_lease.leased_until <= :now OR search_lease.holder = excluded.holder"
)


def zones_behind_read(*, limit: int) -> Load[list[ZoneProgress]]:
    """Read up to `limit` zones with changes that are not indexed yet."""
    rows = yield BEHIND, {"limit": limit}
    return [ZoneProgress(*row) for row in rows]


def progress_read(zones: Collection[int]) -> Load[list[ZoneProgress]]:
    """Read the indexing progress of zones."""
    rows = yield PROGRESS_OF, {"zones": dumps(sorted(zones))}
    return [ZoneProgress(*row) for row in rows]


def changed_read(zone: int, *, since: int, until: int) -> Load[list[int]]:
    """Read the ids of the nodes whose indexed words may have changed between two revisions."""
    rows = yield CHANGED, {"zone": zone, "since": since, "until": until}
    return [row[0] for row in rows]


async def scan_ids(snapshot: StoreSnapshot, zone: int, *, after: int) -> Sequence[int]:
    """Read the ids of the live nodes of a zone that follow a position, in ascending order."""
    ids = array("q")
    async for page in snapshot.pages((SCAN, {"zone": zone, "after": after}), IDS_AT_ONCE):
        ids.extend([row[0] for row in page])
    return ids


def texts_read(ids: Collection[int]) -> Load[dict[int, IndexedText]]:
    """Read the stored words of objects."""
    rows = yield TEXTS, {"ids": dumps(sorted(ids))}
    return {row[0]: IndexedText(*row) for row in rows}


def words_read(
    words: Sequence[str], *, names_only: bool, zones: Collection[int], kinds: Collection[int], limit: int
) -> Load[list[SearchCandidate]]:
    """Read up to `limit` candidates that match all words by prefix: in the name with `names_only`, else anywhere."""
    match = " ".join(f'"{word}" *' for word in words)
    params: dict[str, Value] = {
        "match": f"name : ({match})" if names_only else match,
        "query": " & ".join(f"'{word}':*" for word in words),
        "zones": dumps(sorted(zones)),
        "kinds": dumps(sorted(kinds)),
        "limit": limit,
    }
    rows = yield IN_NAMES if names_only else IN_ALL, params
    return [SearchCandidate(*row) for row in rows]


def known_words_read(words: Sequence[str]) -> Load[list[str]]:
    """Read the given words that occur in the index, in the given order."""
    rows = yield WORDS_KNOWN, {"words": dumps(words)}
    present_words = {row[0] for row in rows}
    return [word for word in words if word in present_words]


class SearchIndexWrites(Writes):
    """Reads and writes the full-text index inside a transaction, for the node that updates it."""

    def lease(self, holder: str, *, lease_ms: int) -> bool:
        """Take or renew the lease of the right to update the index. Returns False if another node holds it."""
        now = self.tx.now_ms
        return self.tx.count(LEASE, {"holder": holder, "until": now + lease_ms, "now": now}) > 0

    def is_at(self, progress: ZoneProgress) -> bool:
        """Return whether a zone's position is unchanged since it was read."""
        rows = self.tx.rows(POSITION, {"zone": progress.zone})
        position = tuple(rows[0]) if rows else (None, None, None)
        return position == (progress.indexed_epoch, progress.revision, progress.scan_after)

    def store_progress(self, zone: int, *, epoch: int, revision: int, scan_after: int | None) -> None:
        """Store the indexing progress of a zone."""
        self.tx.count(POSITION_PUT, {"zone": zone, "epoch": epoch, "revision": revision, "scan_after": scan_after})

    def add_words(self, words: Collection[str]) -> None:
        """Insert words for spelling suggestions, except those that are stored already."""
        self.tx.count(WORDS_PUT, {"words": dumps(sorted(words))})

    def forget_words(self, words: Collection[str]) -> None:
        """Delete those of the given words that occur in no indexed object.

        Words with letters other than Latin, Greek and Cyrillic are not deleted: SQLite's tokenizer may split them.
        """
        single = sorted(word for word in words if word.isalnum() and max(word) <= _SINGLE_MAX)
        if single:
            self.tx.count(WORDS_FORGET, {"words": dumps(single)})

    def replace(self, ids: Collection[int], texts: Sequence[IndexedText]) -> list[IndexedText]:
        """Replace the words of objects; an object without new words is removed from the index.

        Returns the former words of the objects that changed.
        """
        if not ids:
            return []
        new_texts = {text.object_id: text for text in texts}
        stored_texts = {row[0]: IndexedText(*row) for row in self.tx.rows(TEXTS, {"ids": dumps(sorted(ids))})}
        changed_ids = sorted(object_id for object_id in ids if stored_texts.get(object_id) != new_texts.get(object_id))
        former = [stored_texts[object_id] for object_id in changed_ids if object_id in stored_texts]
        added_texts = [new_texts[object_id] for object_id in changed_ids if object_id in new_texts]
        old, new = _rows(former), _rows(added_texts)
        # The full-text entries last: SQLite writes pending ones out before other statements.
        for statement, rows in ((DELETE, old), (PUT, new), (INDEX_DELETE, old), (INDEX_PUT, new)):
            if rows["rows"] != "[]":
                self.tx.count(statement, rows)
        return former


def indexed_entry(text: IndexedText) -> IndexedText:
    """Return the words of an object that the full-text index has: those that prefix searches need.

    A word that another word of the same field begins with adds no match, nor does a word of one letter.
    """
    return text._replace(name=_longest(text.name), columns=_longest(text.columns), comment=_longest(text.comment))


def _longest_words(words: str) -> str:
    in_order = sorted(words.split(" "))
    in_order.append("")
    return " ".join([word for word, after in pairwise(in_order) if len(word) > 1 and not after.startswith(word)])


_longest_of_several = lru_cache(maxsize=CACHED_FIELDS)(_longest_words)
"""Copies of a table, and the tables of a pipeline's stages, have the same columns."""


def _longest(words: str) -> str:
    if " " not in words:
        return words if len(words) > 1 else ""
    return _longest_of_several(words) if len(words) <= CACHED_FIELD_CHARS else _longest_words(words)


def _rows(texts: Sequence[IndexedText]) -> dict[str, Value]:
    """Return the parameter of the statements that write objects: five values of each, and three of its entry."""
    rows = [(*text, *indexed_entry(text)[2:]) for text in texts]
    return {"rows": msgspec.json.encode(rows).decode()}
