# SPDX-License-Identifier: Apache-2.0
"""Random chains of updates of tables and views: valid ones, and ones that are slightly wrong.

Job: a seed in, the documents that the server would store out, each with the kind of the update that made it. May import
`formats.iceberg`, which builds them as for a request. It must not know readers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Final, NamedTuple, cast

from conformance.readable.alterations import altered
from limnos.formats.iceberg.create import new_table
from limnos.formats.iceberg.json_types import Json
from limnos.formats.iceberg.mending import MEND, find_problems
from limnos.formats.iceberg.metadata import references, rows
from limnos.formats.iceberg.name_mappings import NAME_MAPPING
from limnos.formats.iceberg.registered_metadata import check_registrable
from limnos.formats.iceberg.updates import ACTIONS, apply
from limnos.formats.iceberg.view_metadata import check_registrable as check_registrable_view
from limnos.formats.iceberg.view_updates import apply as apply_to_view
from limnos.formats.iceberg.view_updates import new_view
from limnos.model.errors import BadRequest, CommitConflict

UUID: Final = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
LOCATION: Final = "file:/lake/t"
OF_OLDER_RELEASES: Final = (
    *("schemas", "snapshots", "statistics", "partition-statistics", "encryption-keys"),
    "properties",
)
"""Parts of documents that older releases did not check."""
BEGIN_MS: Final = 1_767_225_600_000
ALTERED: Final = 4
"""The number of altered documents that are tried at a time. Most cannot be registered."""
CREATE: Final = "create"
CREATE_VIEW: Final = "create view"
TYPES: Final = (
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "string",
    "uuid",
    "binary",
    "fixed[2]",
    "fixed[ 2 ]",
    "decimal(9,2)",
    "decimal( 9 , 2 )",
    "decimal(10, 2)",
    "decimal(9, 3)",
    "timestamp_ns",
    "timestamptz_ns",
    "unknown",
    "variant",
    "geometry",
    "geometry (srid:3857)",
    "geography(srid:4326, spherical)",
    "geography",
    "decimal(39, 2)",
    "varchar(3)",
    "",
)
_TYPES_OF_ALL: Final = (*TYPES[:18], *TYPES[-3:])
"""The types that all readers know, and the wrong ones."""
DEFAULTS: Final = (
    True,
    5,
    5.5,
    2**31,
    2**63,
    1e300,
    None,
    "x",
    "",
    "2024-02-29",
    "2024-02-30",
    "10:11:12",
    "10:11",
    "25:00:00",
    "2024-01-01T10:11:12",
    "2024-01-01 10:11:12",
    "2024-01-01T10:11:12.123456789",
    "2024-01-01T10:11:12+00:00",
    "2024-01-01T10:11:12+01:00",
    "2024-01-01T10:11:12Z",
    UUID,
    "no",
    "0a0b",
    "0a0b0c",
    "zz",
    "1.50",
    "1.5",
    "7.125",
    "1E+2",
    [],
    ["x"],
    {},
    {"keys": ["a"], "values": []},
)
TRANSFORMS: Final = (
    "identity",
    "void",
    "year",
    "month",
    "day",
    "hour",
    "bucket[4]",
    "truncate[3]",
    "bucket[ 4 ]",
    "Day",
    "bucket[0]",
    "zorder",
)
NAMES: Final = ("id", "name", "ts", "ts_day", "Name", "s", "s.x", "l.x", "txt", "a b", "ä", "t2", "_pos", "")
WORDS: Final = ("a", "b", "", None, 5, True, "x" * 100)
MAPPINGS: Final = (
    '[{"field-id":1,"names":["id","a"]},{"field-id":2,"names":["name"],"fields":[{"field-id":3,"names":["x"]}]}]',
    '[{"names":["a"]},{"names":["b"]}]',
    "[]",
    "",
    "x",
    "{}",
    "[5]",
    '[{"field-id":1}]',
    '[{"field-id":1,"names":[5]}]',
    '[{"field-id":"1","names":["a"]}]',
    '[{"field-id":1.0,"names":["a"]}]',
    '[{"field-id":null,"names":["a","a"]}]',
    '[{"field-id":1,"names":["a"]},{"field-id":2,"names":["a"]}]',
    '[{"field-id":1,"names":["a"]},{"field-id":1,"names":["b"]}]',
    '[{"field-id":1,"names":["a"],"fields":null}]',
    '[{"field-id":2,"names":["a"],"fields":[{"names":["b"]}]},{"names":["a.b"]}]',
    '[{"field-id":2147483648,"names":["a"]}]',
)
"""Values of the property with the name mapping: ones that readers can use, and wrong ones."""
PROPERTIES: Final = (
    NAME_MAPPING,
    "write.format.default",
    "format-version",
    "a",
    "write.metadata.previous-versions-max",
    "history.expire.max-snapshot-age-ms",
)


def _structs(fields: list[Json]) -> Iterator[list[Json]]:
    """Yield lists of fields: this one, and those of the structs in it, also in lists and maps."""
    yield fields
    inner = [one["type"] for one in fields]
    while inner:
        kind = inner.pop()
        if isinstance(kind, dict) and kind["type"] == "struct":
            yield from _structs(kind["fields"])
        elif isinstance(kind, dict):
            inner += [kind[part] for part in ("element", "key", "value") if part in kind]


class StoredDocument(NamedTuple):
    """A document that the server would store: `table` or `view`, and the kind of the update that made it."""

    kind: str
    update: str
    metadata: Json


class RefusedRequest(NamedTuple):
    """A request that the server refuses: the kind of its update, the server's message, and the request's parts in JSON,
    for the reference: what it asks for, such as `change table`, the document before, the updates.
    """

    update: str
    message: str
    parts: list[str]


class Chains:
    """An endless source of documents, and the requests that were refused until `take_refused` gets them."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self._refused: list[RefusedRequest] = []
        self._types: Sequence[str] = TYPES
        self._now_ms = BEGIN_MS

    def documents(self) -> Iterator[StoredDocument]:
        """Yield documents forever."""
        while True:
            self._types = self.random.choice((TYPES, _TYPES_OF_ALL))
            yield from self._view_chain() if self.random.random() < 0.15 else self._table_chain()

    def take_refused(self) -> list[RefusedRequest]:
        """Return the requests that were refused since the last call."""
        requests, self._refused = self._refused, []
        return requests

    def _chance(self, share: float) -> bool:
        return self.random.random() < share

    def _attempt(self, update: str, build: Callable[[], Json], *parts: object) -> Json | None:
        """Return the document that the server makes of a request, or None if it refuses; `parts` are the request's."""
        try:
            return build()
        except (BadRequest, CommitConflict) as error:
            texts = [each if isinstance(each, str) else json.dumps(each) for each in parts]
            self._refused.append(RefusedRequest(update, error.message, texts))
            return None

    # ----------------------------------------------------------------------------------------- tables

    def _table_chain(self) -> Iterator[StoredDocument]:
        version = self.random.choice(("1", "2", "3", "3"))
        self._now_ms = BEGIN_MS

        schema = self._schema(wrong=0.03)
        spec = self._spec() if self._chance(0.4) else None
        order = self._order() if self._chance(0.3) else None

        def create() -> Json:
            return new_table(
                uuid=UUID,
                location=LOCATION,
                schema=schema,
                partition_spec=spec,
                write_order=order,
                properties={"format-version": version},
                now_ms=self._now_ms,
            )

        base = self._attempt(CREATE, create, "create table", LOCATION, version, schema, spec, order)
        if base is None:
            return
        yield StoredDocument("table", CREATE, base)
        for _ in range(self.random.randint(10, 60)):
            self._now_ms += self.random.choice((1, 1000, 90_000))
            name, updates = self._commit(base)
            document = self._attempt(
                name,
                lambda base=base, updates=updates: apply(  # type: ignore[misc]
                    base, list(updates), now_ms=self._now_ms, previous_location=f"{LOCATION}/metadata/1.metadata.json"
                ),
                *("change table", base, *updates),
            )
            if document is not None and document is not base:
                yield StoredDocument("table", name, document)
                base = document
            if self._chance(0.2):
                yield from self._of_older_release(base)
            if self._chance(0.3):
                yield from self._of_other_writer("table", base, check_registrable)

    def _of_older_release(self, base: Json) -> Iterator[StoredDocument]:
        """Yield a document with an unchecked part, as older releases stored it, if no problem is found, else the
        mended one.
        """
        damaged = dict(base)
        key = self.random.choice(OF_OLDER_RELEASES)
        if key == "properties":
            damaged[key] = {**cast("Json", base[key]), NAME_MAPPING: self.random.choice(MAPPINGS)}
        elif key == "schemas":
            current = {"schema-id": base["current-schema-id"], **self._evolved(base)}
            others = [row for row in rows(base, key) if row["schema-id"] != base["current-schema-id"]]
            damaged[key] = [*others, current]
            damaged["last-column-id"] = 300
        elif key == "snapshots":
            snapshot = self._snapshot(base)
            damaged[key] = [*rows(base, key), snapshot, *([snapshot] if self._chance(0.2) else [])]
        else:
            builders = {"statistics": self._statistics, "partition-statistics": self._file}
            part = builders[key](base) if key in builders else self._key(base)["encryption-key"]
            damaged[key] = [*rows(base, key), part]  # type: ignore[list-item]
        if not find_problems(damaged):
            yield StoredDocument("table", f"unchecked {key}", damaged)
            return
        mended = self._attempt(
            f"mended {key}",
            lambda: apply(damaged, [{"action": MEND}], now_ms=self._now_ms, previous_location=None),
        )
        if mended is not None:
            yield StoredDocument("table", f"mended {key}", mended)

    def _of_other_writer(self, kind: str, base: Json, check: Callable[[Json], None]) -> Iterator[StoredDocument]:
        """Yield documents with an altered part that can be registered."""
        for _ in range(ALTERED):
            document = altered(base, self.random)
            try:
                check(document)
            except BadRequest:
                continue
            yield StoredDocument(kind, f"registered {kind}", document)

    def _commit(self, base: Json) -> tuple[str, list[Json]]:
        name = self.random.choice(sorted(ACTIONS))
        update = {"action": name, **self._UPDATES[name](self, base)}
        after: dict[str, Json] = {
            "add-schema": {"action": "set-current-schema", "schema-id": -1},
            "add-spec": {"action": "set-default-spec", "spec-id": -1},
            "add-sort-order": {"action": "set-default-sort-order", "sort-order-id": -1},
        }
        if name in after and self._chance(0.7):
            return name, [update, after[name]]
        if name == "add-snapshot" and self._chance(0.8):
            snapshot_id = update["snapshot"].get("snapshot-id")  # type: ignore[attr-defined]
            reference: Json = {"ref-name": "main", "type": "branch", "snapshot-id": snapshot_id}
            return name, [update, {"action": "set-snapshot-ref", **reference}]
        return name, [update]

    def _some_type(self, depth: int, wrong: float, number: Callable[[], int]) -> object:
        if depth > 2 or self._chance(0.75):
            return self.random.choice(TYPES if self._chance(wrong) else self._types[:-3])
        kind = self.random.choice(("struct", "list", "map"))
        if kind == "struct":
            return {"type": "struct", "fields": self._fields(self.random.randint(1, 2), depth, wrong, number)}
        if kind == "list":
            element = self._some_type(depth + 1, wrong, number)
            return {"type": "list", "element-id": number(), "element": element, "element-required": False}
        key, value = self._some_type(3, wrong, number), self._some_type(depth + 1, wrong, number)
        return {
            "type": "map",
            "key-id": number(),
            "key": key,
            "value-id": number(),
            "value": value,
            "value-required": False,
        }

    def _fields(self, count: int, depth: int, wrong: float, number: Callable[[], int]) -> list[Json]:
        fields = []
        for name in self.random.sample(NAMES[: -1 if self._chance(1 - wrong) else None], count):
            one: Json = {"id": number(), "name": name, "required": self._chance(0.2)}
            one["type"] = self._some_type(depth + 1, wrong, number)
            if self._chance(0.2):
                one["doc"] = self.random.choice(("text", None))
            for key in ("initial-default", "write-default"):
                if self._chance(0.04):
                    one[key] = self.random.choice(DEFAULTS)
            fields.append(one)
        return fields

    def _schema(self, *, wrong: float, fields: list[Json] | None = None) -> Json:
        numbers = iter(range(1, 200))
        chosen = fields or self._fields(self.random.randint(1, 5), 0, wrong, lambda: next(numbers))
        result: Json = {"type": "struct", "fields": chosen}
        if self._chance(0.1):
            result["identifier-field-ids"] = self.random.choice(([1], [], None, [2, 2], [99], ["1"]))
        return result

    def _evolved(self, base: Json) -> Json:
        """Return the current schema with one change, or another schema."""
        current = next(row for row in rows(base, "schemas") if row["schema-id"] == base["current-schema-id"])
        fields = cast("list[Json]", json.loads(json.dumps(rows(current, "fields"))))
        if not fields or self._chance(0.2):
            return self._schema(wrong=0.1)
        top, fields = fields, self.random.choice([each for each in _structs(fields) if each])
        one = self.random.choice(fields)
        last = int(str(base["last-column-id"]))
        match self.random.randint(0, 7):
            case 0:
                one["name"] = self.random.choice(NAMES)
            case 1:
                one["type"] = self.random.choice(self._types)
            case 2:
                one["required"] = not one["required"]
            case 3:
                one[self.random.choice(("initial-default", "write-default"))] = self.random.choice(DEFAULTS)
            case 4:
                fields.remove(one)
            case 5 if isinstance(one["type"], dict):
                part = self.random.choice(
                    [key for key in one["type"] if key in ("element", "key", "value")] or ["type"]
                )
                one["type"][part] = self.random.choice(self._types)
            case 6:
                fields.remove(one)
                top.append(one)
            case _:
                numbers = iter(
                    (last + 1 if self._chance(0.8) else self.random.randint(1, max(last, 1)), *range(300, 400))
                )
                fields += self._fields(1, 0, 0.1, lambda: next(numbers))
        return self._schema(wrong=0.1, fields=top)

    def _spec(self) -> Json:
        fields = []
        for _ in range(self.random.randint(0, 2)):
            one: Json = {"source-id": self.random.randint(1, 6), "transform": self.random.choice(TRANSFORMS)}
            one["name"] = self.random.choice((*NAMES, "p", "q"))
            if self._chance(0.2):
                one["field-id"] = self.random.choice((1000, 1001, None, 2**31 - 1, 2**31))
            fields.append(one)
        return {"fields": fields}

    def _order(self) -> Json:
        directions = ("asc", "desc", "ASC", "up")
        fields = [
            {
                "source-id": self.random.randint(1, 6),
                "transform": self.random.choice(TRANSFORMS),
                "direction": self.random.choice(directions),
                "null-order": self.random.choice(("nulls-first", "nulls-last", None)),
            }
            for _ in range(self.random.randint(0, 2))
        ]
        return {"order-id": self.random.randint(0, 2), "fields": fields}

    def _snapshot(self, base: Json) -> Json:
        known = [row["snapshot-id"] for row in rows(base, "snapshots")]
        last = int(str(base.get("last-sequence-number") or 0))
        snapshot: Json = {
            "snapshot-id": self.random.choice((len(known) + 1, self.random.getrandbits(62))),
            "timestamp-ms": self._now_ms + self.random.choice((0, 0, 0, -30_000)),
            "summary": self.random.choice(
                ({"operation": "append"}, {"operation": "append", "a": "b"}, None, {"a": "b"}, {"operation": 5})
            ),
        }
        if base["format-version"] == 1 and self._chance(0.3):
            snapshot["manifests"] = self.random.choice((["a.avro"], [], [5]))
        else:
            snapshot["manifest-list"] = self.random.choice(("file:/lake/t/m.avro",) * 9 + (None,))
        if base["format-version"] != 1:
            snapshot["sequence-number"] = last + self.random.choice((1, 1, 1, 0, 2))
        if base["format-version"] == 3:
            snapshot["first-row-id"] = int(str(base.get("next-row-id") or 0)) + self.random.choice((0, 0, 5, -1))
            snapshot["added-rows"] = self.random.choice((0, 5, 5, 2**62, -1))
        for key, values in (
            ("parent-snapshot-id", (*known[-1:], None, snapshot["snapshot-id"], len(known) + 2)),
            ("schema-id", (0, None, base["current-schema-id"], 99)),
            ("key-id", ("k", None, 5)),
        ):
            if self._chance(0.5):
                snapshot[key] = self.random.choice(values)
        return snapshot

    def _any_snapshot_id(self, base: Json) -> object:
        return self.random.choice([row["snapshot-id"] for row in rows(base, "snapshots")] or [1])

    def _file(self, base: Json) -> Json:
        return {
            "snapshot-id": self._any_snapshot_id(base),
            "statistics-path": self.random.choice(("file:/lake/t/s.puffin",) * 5 + ("", None)),
            "file-size-in-bytes": self.random.choice((100, 100, 100, -1, "100")),
        }

    def _statistics(self, base: Json) -> Json:
        blob: Json = {
            "type": self.random.choice(("apache-datasketches-theta-v1",) * 5 + (None, 5)),
            "snapshot-id": self._any_snapshot_id(base),
            "sequence-number": self.random.choice((1, 1, 1, "1")),
            "fields": self.random.choice(([1], [1], [], ["id"], [2**31])),
        }
        if self._chance(0.5):
            blob["properties"] = self.random.choice(({"ndv": "5"}, {"ndv": 5}, None))
        blobs = self.random.choice(([blob], [blob], [], [{}], None))
        entry = {**self._file(base), "file-footer-size-in-bytes": 5, "blob-metadata": blobs}
        if self._chance(0.2):
            entry["key-metadata"] = self.random.choice(("a", None, 5))
        return entry

    def _key(self, _: Json) -> Json:
        key: Json = {
            "key-id": self.random.choice(("k", "l")),
            "encrypted-key-metadata": self.random.choice(("eA==", "eA", "!", "", 5)),
        }
        if self._chance(0.4):
            key["encrypted-by-id"] = self.random.choice(("k", None, 5))
        if self._chance(0.4):
            key["properties"] = self.random.choice(({"a": "b"}, {"a": 5}, None))
        return {"encryption-key": key}

    def _reference(self, base: Json) -> Json:
        update: Json = {
            "ref-name": self.random.choice(("main", "dev", "tag", "")),
            "type": self.random.choice(("branch", "branch", "tag", "twig")),
            "snapshot-id": self._any_snapshot_id(base),
        }
        for key in ("max-ref-age-ms", "max-snapshot-age-ms", "min-snapshots-to-keep"):
            if self._chance(0.2):
                update[key] = self.random.choice((1, 100, None, 0, -1, "5", 2**31))
        return update

    def _properties(self) -> Json:
        name = self.random.choice(PROPERTIES)
        return {name: self.random.choice(MAPPINGS if name == NAME_MAPPING else ("a", "5", "", None, 5))}

    def _id(self, base: Json, key: str, id_key: str) -> object:
        return self.random.choice([*(row[id_key] for row in rows(base, key)), -1])

    _UPDATES: Final[dict[str, Callable[[Chains, Json], Json]]] = {
        "assign-uuid": lambda self, _: {"uuid": self.random.choice((UUID, UUID.upper(), "no"))},
        "upgrade-format-version": lambda self, _: {"format-version": self.random.choice((1, 2, 3, 4))},
        "set-location": lambda self, _: {"location": self.random.choice((f"{LOCATION}2", f"{LOCATION}/", "", None))},
        "add-schema": lambda self, base: {"schema": self._evolved(base), "last-column-id": 5},
        "set-current-schema": lambda self, base: {"schema-id": self._id(base, "schemas", "schema-id")},
        "remove-schemas": lambda self, base: {"schema-ids": [self._id(base, "schemas", "schema-id")]},
        "add-spec": lambda self, _: {"spec": self._spec()},
        "set-default-spec": lambda self, base: {"spec-id": self._id(base, "partition-specs", "spec-id")},
        "remove-partition-specs": lambda self, base: {"spec-ids": [self._id(base, "partition-specs", "spec-id")]},
        "add-sort-order": lambda self, _: {"sort-order": self._order()},
        "set-default-sort-order": lambda self, base: {"sort-order-id": self._id(base, "sort-orders", "order-id")},
        "add-snapshot": lambda self, base: {"snapshot": self._snapshot(base)},
        "remove-snapshots": lambda self, base: {"snapshot-ids": [self._any_snapshot_id(base)]},
        "set-snapshot-ref": lambda self, base: self._reference(base),
        "remove-snapshot-ref": lambda self, base: {"ref-name": self.random.choice([*references(base), "none"])},
        "set-properties": lambda self, _: {"updates": self._properties()},
        "remove-properties": lambda self, _: {"removals": [self.random.choice(PROPERTIES)]},
        "set-statistics": lambda self, base: {"statistics": self._statistics(base)},
        "remove-statistics": lambda self, base: {"snapshot-id": self._any_snapshot_id(base)},
        "set-partition-statistics": lambda self, base: {"partition-statistics": self._file(base)},
        "remove-partition-statistics": lambda self, base: {"snapshot-id": self._any_snapshot_id(base)},
        "add-encryption-key": lambda self, base: self._key(base),
        "remove-encryption-key": lambda self, _: {"key-id": self.random.choice(("k", "l"))},
        "limnos-mend-metadata": lambda _self, _base: {},
    }

    # ----------------------------------------------------------------------------------------- views

    def _view_chain(self) -> Iterator[StoredDocument]:
        self._now_ms = BEGIN_MS

        schema, version = self._schema(wrong=0.1), self._view_version()

        def create() -> Json:
            return new_view(
                uuid=UUID,
                location=LOCATION,
                schema=schema,
                version=version,
                properties={"a": "b"},
                now_ms=self._now_ms,
            )

        base = self._attempt(CREATE_VIEW, create, "create view", LOCATION, *self._view_updates(schema, version))
        if base is None:
            return
        yield StoredDocument("view", CREATE_VIEW, base)
        for _ in range(self.random.randint(1, 6)):
            self._now_ms += 1000
            name, updates = self._view_commit()
            document = self._attempt(
                f"view: {name}",
                lambda base=base, updates=updates: apply_to_view(base, list(updates), now_ms=self._now_ms),  # type: ignore[misc]
                *("change view", base, *updates),
            )
            if document is not None and document is not base:
                yield StoredDocument("view", f"view: {name}", document)
                base = document
            yield from self._of_other_writer("view", base, check_registrable_view)

    def _view_commit(self) -> tuple[str, list[Json]]:
        others: list[tuple[str, Json]] = [
            ("set-properties", {"updates": {"a": self.random.choice(("b", "", None))}}),
            ("remove-properties", {"removals": ["a"]}),
            ("set-location", {"location": f"{LOCATION}2"}),
            ("assign-uuid", {"uuid": UUID}),
            ("upgrade-format-version", {"format-version": 1}),
        ]
        if self._chance(0.6):
            return "add-view-version", self._view_updates(self._schema(wrong=0.1), self._view_version())
        name, fields = self.random.choice(others)
        return name, [{"action": name, **fields}]

    def _view_updates(self, schema: Json, version: Json) -> list[Json]:
        return [
            {"action": "add-schema", "schema": schema},
            {"action": "add-view-version", "view-version": {**version, "schema-id": -1}},
            {"action": "set-current-view-version", "view-version-id": -1},
        ]

    def _view_version(self) -> Json:
        dialects = self.random.choice((("spark",), ("spark", "trino"), ("Spark", "spark"), ()))
        version: Json = {
            "version-id": 1,
            "schema-id": 0,
            "timestamp-ms": self._now_ms,
            "default-namespace": self.random.choice((["a"], [], ["a"], "a")),
            "representations": [{"type": "sql", "sql": "select 1", "dialect": each} for each in dialects],
        }
        for key, values in (
            ("summary", ({"engine-name": "spark"}, {}, None, {"a": 5})),
            ("default-catalog", ("main", None, "")),
        ):
            if self._chance(0.6):
                version[key] = self.random.choice(values)
        return version
