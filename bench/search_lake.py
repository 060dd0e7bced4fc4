# SPDX-License-Identifier: Apache-2.0
"""A lake for searches: tables with names, columns and comments of many words, and the index of these words.

May import `seed`, the store's schema and the words of `rooms.search.services`. The index is written with the words that
the server would write, so that its first reading of a million objects is no part of a measurement.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from bench.operations import PREFIX
from bench.seed import TEMPLATE, Forest, open_filler
from limnos.model.kinds import Kind
from limnos.model.privileges import Privilege
from limnos.rooms.search.services.object_words import index_name
from limnos.rooms.search.services.spelling import spelled_words
from limnos.rooms.search.services.words import words_of
from limnos.store.activity.search_index import IndexedText, indexed_entry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.seed import Filler
    from bench.stores import Place

TABLES_EACH: Final = 200
"""Tables of a namespace."""
TOPS: Final = 20
COLUMNS: Final = 8
COMMENT_WORDS: Final = 4
LIKE: Final = "searched"
CROWD: Final = "crowd"
"""The namespace of `plant_crowd`."""
COMMENT: Final = "comment_of_the_template"
TEXTS_AT_ONCE: Final = 20_000
SINGLE_GRANTS: Final = 500
LITTLE, PICKER, ADMIN = "little", "picker", "admin"
"""Callers: one may see one namespace, one may see single tables, the admin sees all."""
_SYLLABLES: Final = tuple(consonant + vowel for consonant in "bdfghklmnprstvz" for vowel in "aeiou")


def template_bodies() -> list[tuple[str, object]]:
    """Return the requests that create the template of tables."""
    fields = [
        {"id": number + 1, "name": f"column_{number}_x", "required": False, "type": "string"}
        for number in range(COLUMNS)
    ]
    schema = {"type": "struct", "schema-id": 0, "fields": fields}
    table = {"name": LIKE, "schema": schema, "properties": {"comment": COMMENT}}
    return [
        (f"{PREFIX}/namespaces", {"namespace": [TEMPLATE]}),
        (f"{PREFIX}/namespaces/{TEMPLATE}/tables", table),
    ]


@dataclass(frozen=True, slots=True)
class SearchedTable:
    """A table of the lake."""

    namespace: tuple[str, ...]
    name: str
    columns: tuple[str, ...]
    comment: str

    @property
    def path(self) -> list[str]:
        """The path from the catalog down."""
        return ["main", *self.namespace, self.name]


@dataclass(frozen=True)
class Lake:
    """The tables of a lake of about `objects` objects. The same number gives the same tables."""

    objects: int

    @property
    def namespaces(self) -> int:
        """The number of namespaces with tables."""
        return max(1, self.objects // (TABLES_EACH + 1))

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """Return the words: a few of them are in many names, most are in a few."""
        dice = random.Random(7)
        words: dict[str, None] = {}
        while len(words) < max(400, min(200_000, self.objects // 5)):
            words.setdefault("".join(dice.choices(_SYLLABLES, k=dice.choice((2, 3, 3, 4)))))
        return tuple(words)

    def namespace(self, number: int) -> tuple[str, ...]:
        """Return the levels of a namespace."""
        return (f"area_{self.vocabulary[number % TOPS]}", f"{self.vocabulary[number]}_{number}")

    def tables(self, number: int) -> list[SearchedTable]:
        """Return the tables of a namespace."""
        dice, levels = random.Random(number), self.namespace(number)
        names: dict[str, None] = {}
        while len(names) < TABLES_EACH:
            count = dice.choice((1, 2, 2, 3))
            name = "_".join(self._word(dice) for _ in range(count))
            names.setdefault(f"{name}_{dice.randint(1990, 2030)}" if dice.random() < 0.3 else name)
        return [
            SearchedTable(
                levels,
                name,
                tuple(dict.fromkeys(f"{self._word(dice)}_{each}" for each in "abcdefgh")),
                " ".join(self._word(dice) for _ in range(COMMENT_WORDS)),
            )
            for name in names
        ]

    def any_table(self, dice: random.Random) -> SearchedTable:
        """Return a random table."""
        return dice.choice(self.tables(dice.randrange(self.namespaces)))

    def _word(self, dice: random.Random) -> str:
        return self.vocabulary[int(len(self.vocabulary) * dice.random() ** 3)]


def plant_lake(place: Place, lake: Lake) -> None:
    """Fill a store that has the template: tables, the index of their words, and two users with few rights."""
    filler = open_filler(place)
    _drop_words(filler, is_sqlite=place.database is None)
    forest, texts = Forest(filler), list[tuple[int, int, str, str, str]]()
    tops = [forest.namespace(forest.catalog_id, lake.namespace(number)[0]) for number in range(TOPS)]
    for number, node_id in enumerate(tops):
        texts.append(
            (node_id, forest.catalog_id, index_name(words_of([lake.namespace(number)[0]]), Kind.NAMESPACE), "", "")
        )
    picked: list[tuple[int, int]] = []
    first, words = 0, set[str]()
    for number in range(lake.namespaces):
        levels = lake.namespace(number)
        parent = forest.namespace(tops[number % TOPS], levels[-1])
        first = first or parent
        texts.append((parent, forest.catalog_id, index_name(words_of([levels[-1]]), Kind.NAMESPACE), "", ""))
        for each in lake.tables(number):
            renamed = [(f"column_{place_}_x", column) for place_, column in enumerate(each.columns)]
            node_id = forest.table(parent, each.name, like=LIKE, renamed=[*renamed, (COMMENT, each.comment)])
            texts.append(_text(node_id, forest.catalog_id, each))
        if len(picked) < SINGLE_GRANTS:
            picked.append((parent, node_id))
        if len(texts) >= TEXTS_AT_ONCE:
            forest.flush()
            words |= spelled_words(text for each in texts for text in each[2:])
            _write_words(filler, texts, is_sqlite=place.database is None)
    forest.flush()
    words |= spelled_words(text for each in texts for text in each[2:])
    _write_words(filler, texts, is_sqlite=place.database is None)
    _plant_callers(forest, tops[0], first, picked)
    _finish_words(forest, words)
    forest.close()


def _text(node_id: int, zone: int, table: SearchedTable) -> tuple[int, int, str, str, str]:
    return node_id, zone, words_of([table.name]), words_of(table.columns), words_of([table.comment])


def _drop_words(filler: Filler, *, is_sqlite: bool) -> None:
    filler.run("DELETE FROM search_text")
    filler.run("DELETE FROM search_word")
    if is_sqlite:
        filler.run("INSERT INTO search_words (search_words) VALUES ('delete-all')")
    if not is_sqlite:
        filler.run(
            "CREATE TEMPORARY TABLE planted (object_id bigint, zone bigint, name text, columns text, comment text)"
        )


def _write_words(filler: Filler, texts: list[tuple[int, int, str, str, str]], *, is_sqlite: bool) -> None:
    columns = ("object_id", "zone", "name", "columns", "comment")
    filler.copy("search_text" if is_sqlite else "planted", columns, texts)
    if is_sqlite:
        entries = [indexed_entry(IndexedText._make(each)) for each in texts]
        filler.copy(
            "search_words",
            ("rowid", "name", "columns", "comment"),
            [(each.object_id, each.name, each.columns, each.comment) for each in entries],
        )
    texts.clear()
    if not is_sqlite:
        lexemes = "array_to_tsvector(array_remove(string_to_array({}, ' '), ''))"
        both = lexemes.format("name"), lexemes.format("name || ' ' || columns || ' ' || comment")
        filler.run(
            f"INSERT INTO search_text ({', '.join(columns)}, name_vector, all_vector)"
            f" SELECT {', '.join(columns)}, {', '.join(both)} FROM planted"
        )
        filler.run("TRUNCATE planted")


def _finish_words(forest: Forest, words: set[str]) -> None:
    """Mark everything as indexed; closing a forest advances both clocks by one."""
    forest.filler.copy("search_word", ("word",), [(word,) for word in sorted(words)])
    zones = f"({forest.catalog_id}, {forest.metalake_id})"
    forest.filler.run(f"DELETE FROM search_position WHERE zone IN {zones}")
    forest.filler.run(
        "INSERT INTO search_position (zone, epoch, revision, scan_after)"
        f" SELECT zone, (SELECT epoch FROM store), revision + 1, NULL FROM clock WHERE zone IN {zones}"
    )


def _plant_callers(forest: Forest, top: int, first: int, picked: list[tuple[int, int]]) -> None:
    catalog = (forest.catalog_id, Kind.CATALOG, Privilege.USE_CATALOG, True)
    one = [(first, Kind.NAMESPACE, right, True) for right in (Privilege.USE_SCHEMA, Privilege.SELECT_TABLE)]
    above = (top, Kind.NAMESPACE, Privilege.USE_SCHEMA, True)
    forest.role("of_one_namespace", [catalog, above, *one], held_by=forest.principal(LITTLE))
    forest.role("of_single_tables", [catalog, *_single_grants(picked)], held_by=forest.principal(PICKER))


def _single_grants(picked: list[tuple[int, int]]) -> Iterator[tuple[int, Kind, Privilege, bool]]:
    for namespace, table in picked:
        yield namespace, Kind.NAMESPACE, Privilege.USE_SCHEMA, True
        yield table, Kind.TABLE, Privilege.SELECT_TABLE, True


def plant_crowd(place: Place, tables: int) -> None:
    """Write a namespace with many tables."""
    forest = Forest(open_filler(place))
    parent = forest.namespace(forest.catalog_id, CROWD)
    for number in range(tables):
        forest.table(parent, f"t{number:05}", like=LIKE)
    forest.close()
