# SPDX-License-Identifier: Apache-2.0
"""Changes of a table's current schema: rows that exist stay readable."""

from __future__ import annotations

import pytest

from limnos.formats.iceberg.evolution import check_column_names, is_promotion
from limnos.formats.iceberg.json_types import Json
from limnos.formats.iceberg.rows import DocumentRows
from limnos.formats.iceberg.schema import columns
from limnos.formats.iceberg.types import parse_primitive
from limnos.model.errors import BadRequest
from limnos.names.columns import METADATA_COLUMNS
from tests.formats.iceberg.samples import add, appended, commit, field, ref, schema, table

TYPES = (
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "decimal(9, 2)",
    "decimal(10, 2)",
    "decimal(10, 3)",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "string",
    "uuid",
    "fixed[2]",
    "binary",
    "timestamp_ns",
    "unknown",
)
MANY = 60
FROM_V1 = {("int", "long"), ("float", "double"), ("decimal(9, 2)", "decimal(10, 2)")}
FROM_V3 = {("date", "timestamp"), ("date", "timestamp_ns"), *(("unknown", each) for each in TYPES[:-1])}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_promotions_are_those_of_the_specification(version: int) -> None:
    """Each pair of types, in each format version."""
    allowed = {
        (old, new)
        for old in TYPES
        for new in TYPES
        if old != new and is_promotion(parse_primitive(old), parse_primitive(new), version=version)
    }

    assert allowed == FROM_V1 | (FROM_V3 if version > 2 else set())


def evolve(base: Json, *fields: Json, more: tuple[Json, ...] = ()) -> Json:
    """Commit a new current schema."""
    updates: list[Json] = [
        {"action": "add-schema", "schema": schema(*fields)},
        {"action": "set-current-schema", "schema-id": -1},
    ]
    return commit(base, *updates, *more)


ID, NAME, DAY = field(1, "id", required=True), field(2, "name", "string"), field(3, "day", "date")
INNER: Json = {"type": "struct", "fields": [field(5, "x", required=True)]}
GOOD: dict[str, tuple[Json, ...]] = {
    "new optional column": (ID, NAME, DAY, field(4, "more", "int")),
    "required becomes optional": (field(1, "id"), NAME, DAY),
    "dropped and renamed": (ID, field(3, "when", "date")),
    "another type under a new id": (ID, field(4, "name", "int"), DAY),
    "required in a new optional struct": (ID, NAME, DAY, field(4, "s", INNER)),
}
BAD: dict[str, tuple[tuple[Json, ...], str]] = {
    "type": ((ID, field(2, "name", "int"), DAY), "name of type string cannot become int"),
    "struct": ((ID, field(2, "name", INNER), DAY), "name was string and cannot become a struct"),
    "narrower": ((field(1, "id", "int", required=True), NAME, DAY), "id of type long cannot become int"),
    "optional becomes required": ((ID, field(2, "name", "string", required=True), DAY), "cannot become required"),
    "new required": ((ID, NAME, DAY, field(4, "more", required=True)), "more is new and required"),
}


@pytest.mark.parametrize("name", GOOD)
def test_schema_that_reads_existing_rows_is_accepted(name: str) -> None:
    """Rows that exist can be read with the next schema."""
    assert evolve(appended(1), *GOOD[name])["current-schema-id"] == 1


@pytest.mark.parametrize("name", BAD)
def test_schema_that_cannot_read_existing_rows_is_refused(name: str) -> None:
    """The message names the column and the change."""
    fields, text = BAD[name]

    with pytest.raises(BadRequest) as caught:
        evolve(appended(1), *fields)

    assert text in caught.value.message


def test_new_required_column_with_an_initial_default_is_accepted() -> None:
    """Rows that exist get the default."""
    more = field(4, "more", "int", required=True, **{"initial-default": 5, "write-default": 5})

    assert evolve(appended(1, version=3), ID, NAME, DAY, more)["current-schema-id"] == 1


@pytest.mark.parametrize("name", BAD)
def test_table_without_rows_takes_any_schema(name: str) -> None:
    """No row exists: none was written, all were deleted, or the commit replaces them."""
    fields = BAD[name][0]
    empty = add(1, summary={"operation": "delete", "total-records": "0"})
    no_main: Json = {"action": "remove-snapshot-ref", "ref-name": "main"}

    assert evolve(table(2), *fields)["current-schema-id"] == 1
    assert evolve(commit(table(2), empty, ref(1)), *fields)["current-schema-id"] == 1
    assert evolve(appended(1), *fields, more=(no_main,))["current-schema-id"] == 1
    assert evolve(appended(1), *fields, more=(add(2), ref(2)))["current-schema-id"] == 1


def test_rows_with_a_parent_keep_their_columns() -> None:
    """A commit that adds rows to those that exist does not change the type of a column."""
    with pytest.raises(BadRequest, match="name of type string cannot become int"):
        evolve(appended(1), ID, field(2, "name", "int"), DAY, more=(add(2, parent=1), ref(2)))


def test_rows_of_a_branch_keep_their_columns() -> None:
    """Engines read a branch with the table's current schema, and a tag with that of its snapshot: rows on a branch
    alone count, also if `main` is empty or replaced.
    """
    other = ref(1, "audit")
    empty = add(2, summary={"operation": "delete", "total-records": "0"})
    on_branch = commit(table(2), add(1), other)
    bases = (on_branch, commit(on_branch, empty, ref(2)), commit(appended(1), other))
    for base in bases:
        with pytest.raises(BadRequest, match=r"branch 'audit' .*name of type string cannot become int.*remove-snap"):
            evolve(base, ID, field(2, "name", "int"), DAY, more=(add(3), ref(3)))
        drop: Json = {"action": "remove-snapshot-ref", "ref-name": "audit"}
        assert evolve(base, ID, field(2, "name", "int"), DAY, more=(add(3), ref(3), drop))["current-schema-id"] == 1
        assert evolve(base, ID, field(2, "name", "int"), DAY, more=(add(3), ref(3), ref(3, "audit")))

    tagged = commit(table(2), add(1), ref(1, "audit", "tag"))
    assert evolve(tagged, ID, field(2, "name", "int"), DAY)["current-schema-id"] == 1


def test_several_new_snapshots_replace_all_rows() -> None:
    """A snapshot without a parent replaces the rows, and those that follow it in the request add to the new ones."""
    replaced = (add(2), add(3, parent=2), ref(3))
    extended = (add(2, parent=1), add(3, parent=2), ref(3))

    assert evolve(appended(1), ID, field(2, "name", "int"), DAY, more=replaced)["current-schema-id"] == 1
    with pytest.raises(BadRequest, match="Rows of the table"):
        evolve(appended(1), ID, field(2, "name", "int"), DAY, more=extended)


@pytest.mark.parametrize("version", [2, 3])
def test_rows_of_a_transaction_keep_the_columns_of_their_schema(version: int) -> None:
    """A transaction on an empty table that appends rows, changes the type of a column, and appends again: the first
    rows must be readable, too. A snapshot without a parent replaces them.
    """
    first = add(1, version=version, **{"schema-id": 0})
    second, replaced = (add(2, parent=parent, version=version, **{"schema-id": 1}) for parent in (1, None))
    changed = (ID, NAME, field(3, "day", "timestamp"))
    base = table(version)

    assert evolve(base, *changed, more=(first, replaced, ref(2)))["current-schema-id"] == 1
    assert evolve(base, *GOOD["dropped and renamed"], more=(first, second, ref(2)))["current-schema-id"] == 1
    if version > 2:
        assert evolve(base, *changed, more=(first, second, ref(2)))["current-schema-id"] == 1
        return
    for more, branch in (((first, second, ref(2)), "the table"), ((first, ref(1, "audit")), "branch 'audit'")):
        with pytest.raises(BadRequest, match=f"Rows of {branch} .*day of type date cannot become timestamp"):
            evolve(base, *changed, more=more)


def test_many_branches_are_walked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request with as many branches as snapshots looks a snapshot up a few times, and not once for each branch."""
    looked_up: list[object] = []
    find = DocumentRows.find

    def counted(self: DocumentRows, expected: int | str) -> Json | None:
        looked_up.append(expected)
        return find(self, expected)

    monkeypatch.setattr(DocumentRows, "find", counted)
    added = [add(n, parent=n - 1 if n > 1 else None, **{"schema-id": 0}) for n in range(1, MANY + 1)]

    evolve(table(2), ID, NAME, more=(*added, *(ref(MANY - n % 2, f"b{n}") for n in range(MANY))))

    assert MANY < len(looked_up) < 12 * MANY


def struct(*fields: Json) -> Json:
    """Return the type of a struct."""
    return {"type": "struct", "fields": list(fields)}


def items(element: object, element_id: int = 3) -> Json:
    """Return the type of a list."""
    return {"type": "list", "element-id": element_id, "element": element, "element-required": False}


def pairs(key: object, value: object, value_id: int = 4) -> Json:
    """Return the type of a map with the key's id 3."""
    return {"type": "map", "key-id": 3, "key": key, "value-id": value_id, "value": value, "value-required": False}


def with_rows(*fields: Json, version: int = 2, spec: Json | None = None) -> Json:
    """Return a table with rows of a schema."""
    base = evolve(table(version), *fields)
    if spec is not None:
        base = commit(base, {"action": "add-spec", "spec": spec}, {"action": "set-default-spec", "spec-id": -1})
    return commit(base, add(1, version=version), ref(1))


NESTED: dict[str, tuple[Json, Json, str]] = {
    "type in a list": (items("int"), items("string"), "c.element of type int cannot become string"),
    "type in a map": (pairs("int", "long"), pairs("int", "int"), "c.value of type long cannot become int"),
    "key of a map": (pairs("int", "int"), pairs("string", "int"), "c.key of type int cannot become string"),
    "another element": (items("int"), items("int", 9), "c.element has another field id"),
    "another value": (pairs("int", "int"), pairs("int", "int", 9), "c.value has another field id"),
    "list to map": (items("int", 4), pairs("int", "int"), "c was a list and cannot become a map"),
    "list to struct": (items("int"), struct(field(3, "element", "int")), "c was a list and cannot become a struct"),
    "new in a key": (
        pairs(struct(field(5, "x")), "int"),
        pairs(struct(field(5, "x"), field(6, "y")), "int"),
        "c.key.y is new in the key of a map",
    ),
    "dropped from a key": (
        pairs(struct(field(5, "x"), field(6, "y")), "int"),
        pairs(struct(field(5, "x")), "int"),
        "c.key.y belongs to the key of a map",
    ),
}


@pytest.mark.parametrize("before,after,text", NESTED.values(), ids=NESTED)
def test_nested_fields_that_cannot_be_read_are_refused(before: Json, after: Json, text: str) -> None:
    """The rules hold in lists, maps and structs, whose parts keep their field ids."""
    with pytest.raises(BadRequest) as caught:
        evolve(with_rows(field(2, "c", before)), field(2, "c", after))

    assert text in caught.value.message
    assert evolve(evolve(table(2), field(2, "c", before)), field(2, "c", after))["current-schema-id"] == 2


def test_nested_fields_may_be_widened_added_and_dropped() -> None:
    """Outside of keys, structs in lists and maps change like a table's columns."""
    before = pairs("int", struct(field(5, "x", "int"), field(6, "y", "int")))
    after = pairs("int", struct(field(5, "x", "long"), field(7, "z", "string")))

    assert evolve(with_rows(field(2, "c", before)), field(2, "c", after))["current-schema-id"] == 2


def test_field_cannot_move_to_another_struct() -> None:
    """Readers look for a field where files have it."""
    before = (ID, field(2, "s", struct(field(3, "x"), field(4, "y"))))

    with pytest.raises(BadRequest, match=r"x was s\.x, and a field cannot move"):
        evolve(with_rows(*before), ID, field(2, "s", struct(field(4, "y"))), field(3, "x"))


def test_dropped_field_id_keeps_its_type() -> None:
    """A column comes back under its id with its own type, or with a wider one; files have its values."""
    base = evolve(with_rows(ID, field(2, "a", "int")), ID)

    with pytest.raises(BadRequest, match="b of type int cannot become string"):
        evolve(base, ID, field(2, "b", "string"))

    assert evolve(base, ID, field(2, "b", "long"))["current-schema-id"] == 3
    assert evolve(base, ID, field(9, "a", "string"))["current-schema-id"] == 3


@pytest.mark.parametrize("attributes", [{}, {"initial-default": 6}, {"initial-default": None}])
def test_initial_default_of_existing_rows_stays(attributes: Json) -> None:
    """Rows from before the column would change their value. The default of new rows may change."""
    base = with_rows(ID, field(2, "a", "int", **{"initial-default": 5}), version=3)

    with pytest.raises(BadRequest, match="a has another initial-default"):
        evolve(base, ID, field(2, "a", "int", **attributes))

    wider = field(2, "a", "long", **{"initial-default": 5, "write-default": 9})
    assert evolve(base, ID, wider)["current-schema-id"] == 2
    with pytest.raises(BadRequest, match="a has another initial-default"):
        evolve(with_rows(ID, field(2, "a", "int"), version=3), ID, field(2, "a", "int", **{"initial-default": 5}))


def test_date_with_a_default_becomes_a_timestamp_with_the_same() -> None:
    """The default is the same day in the other type's form."""
    base = with_rows(ID, field(2, "a", "date", **{"initial-default": "2025-03-04"}), version=3)
    after = field(2, "a", "timestamp", **{"initial-default": "2025-03-04T00:00:00"})

    assert evolve(base, ID, after)["current-schema-id"] == 2


@pytest.mark.parametrize(
    "transform,is_kept", [("identity", False), ("bucket[4]", False), ("day", True), ("month", True), ("void", True)]
)
def test_date_of_a_partition_field_becomes_a_timestamp_if_the_field_is_the_same(
    transform: str, *, is_kept: bool
) -> None:
    """The partitions of files that exist would have other values: section Schema Evolution of the specification."""
    spec: Json = {"fields": [{"source-id": 2, "transform": transform, "name": "p"}]}
    base = with_rows(ID, field(2, "a", "date"), version=3, spec=spec)

    if is_kept:
        assert evolve(base, ID, field(2, "a", "timestamp"))["current-schema-id"] == 2
        return
    with pytest.raises(BadRequest, match="a of type date cannot become timestamp: a partition field"):
        evolve(base, ID, field(2, "a", "timestamp"))


def test_reserved_field_ids_are_refused() -> None:
    """Iceberg gives the highest 200 ids to metadata columns such as `_file`."""
    for number in (2_147_483_447, 2_147_483_448, 2_147_483_646):
        if number == 2_147_483_447:
            assert evolve(table(2), field(number, "a"))["last-column-id"] == number
            continue
        with pytest.raises(BadRequest, match="'id' must be between 0 and 2147483447"):
            evolve(table(2), field(number, "a"))


@pytest.mark.parametrize("name", sorted(METADATA_COLUMNS))
def test_names_of_metadata_columns_are_refused(name: str) -> None:
    """A new column, a renamed one, and one of a new table or of a replaced one must not have such a name; a nested
    field may.
    """
    inner: Json = {"type": "struct", "fields": [field(5, name)]}
    for fields in ((ID, NAME, DAY, field(4, name)), (ID, field(2, name, "string"), DAY)):
        with pytest.raises(BadRequest, match=f"field '{name}': Iceberg reserves this name"):
            evolve(appended(1), *fields)
        with pytest.raises(BadRequest, match="Iceberg reserves this name"):
            evolve(table(2), *fields)

    assert evolve(appended(1), ID, NAME, DAY, field(4, "s", inner))["current-schema-id"] == 1


def test_reserved_column_of_an_older_release_stays() -> None:
    """A table that has such a column takes other columns, and its rename, but no second one."""
    old = schema(ID, field(2, "_file", "string"))

    check_column_names(columns(schema(ID, field(2, "_file", "string"), field(3, "more"))), old)
    check_column_names(columns(schema(ID, field(2, "file", "string"))), old)
    with pytest.raises(BadRequest, match="'_pos'"):
        check_column_names(columns(schema(ID, field(2, "_file", "string"), field(3, "_pos"))), old)
    with pytest.raises(BadRequest, match="'_file'"):
        check_column_names(columns(schema(ID, field(3, "_file", "string"))), old)


def test_heal_of_a_damaged_schema_adds_no_reserved_column() -> None:
    """A current schema that cannot be parsed says nothing of its rows, and its names still count."""
    damaged = schema(ID, field(2, "_pos"), field(3, "a", "date", **{"write-default": "2024-02-30"}), **{"schema-id": 0})
    base = {**appended(1), "schemas": [damaged]}

    healed = evolve(base, ID, field(2, "_pos"), field(3, "a", "date"))

    assert healed["current-schema-id"] == 1
    with pytest.raises(BadRequest, match="field '_file': Iceberg reserves this name"):
        evolve(base, ID, field(2, "_pos"), field(3, "a", "date"), field(4, "_file", "string"))
