# SPDX-License-Identifier: Apache-2.0
"""A pure model of a table that is altered at random: its columns and rows, and the alters in Gravitino's and in
PyIceberg's form.

The model follows the rules of the two specifications and knows nothing of the server: fields keep their ids, new fields
get the next ids, types are only widened.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import NamedTuple

from pyiceberg.table.update.schema import UpdateSchema
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)

Json = dict[str, object]
Path = tuple[str, ...]
ICEBERG = {
    "integer": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "boolean": "boolean",
    "date": "date",
    "decimal(9,2)": "decimal(9, 2)",
    "decimal(18,2)": "decimal(18, 2)",
    "varchar(20)": "string",
    "varchar(40)": "string",
}
WIDER = {
    "integer": ("long",),
    "float": ("double",),
    "decimal(9,2)": ("decimal(18,2)",),
    "string": ("varchar(20)", "varchar(40)"),
    "varchar(20)": ("varchar(40)", "string"),
    "varchar(40)": ("string", "varchar(20)"),
}
NARROWER = {"long": "integer", "double": "float", "string": "date", "boolean": "string"}
PYICEBERG: dict[str, IcebergType] = {
    "integer": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "string": StringType(),
    "boolean": BooleanType(),
    "date": DateType(),
    "decimal(9,2)": DecimalType(9, 2),
    "decimal(18,2)": DecimalType(18, 2),
}
NESTED = ("struct", "list", "map")
SLOTS = {"list": 1, "map": 2}
"""Ids that a type needs in addition to its column's: those of its parts."""
NEW_TYPES = (*ICEBERG, *NESTED)
PARTS = ("a", "b")
"""Fields of a new struct; the first is never deleted, because otherwise NULL could not be distinguished from a struct
of NULLs.
"""
KEY = "n"
"""The column that numbers the rows; it is never altered."""


@dataclass(kw_only=True)
class ModelColumn:
    """A column, or a field of a struct column."""

    id: int
    name: str
    kind: str
    nullable: bool = True
    comment: str | None = None
    parts: list[ModelColumn] = field(default_factory=list)

    def gravitino(self) -> Json:
        """Return the column in Gravitino's form."""
        column: Json = {"name": self.name, "type": self._word(), "nullable": self.nullable}
        return column if self.comment is None else column | {"comment": self.comment}

    def _word(self) -> object:
        if self.kind == "struct":
            return {"type": "struct", "fields": [part.gravitino() for part in self.parts]}
        if self.kind == "list":
            return {"type": "list", "containsNull": True, "elementType": "integer"}
        if self.kind == "map":
            return {"type": "map", "valueContainsNull": True, "keyType": "string", "valueType": "long"}
        return self.kind

    def iceberg(self) -> Json:
        """Return the column in the form of Iceberg's metadata."""
        column: Json = {"id": self.id, "name": self.name, "required": not self.nullable, "type": self._stored()}
        return column if self.comment is None else column | {"doc": self.comment}

    def _stored(self) -> object:
        if self.kind == "struct":
            return {"type": "struct", "fields": [part.iceberg() for part in self.parts]}
        if self.kind == "list":
            return {"type": "list", "element-id": self.id + 1, "element-required": False, "element": "int"}
        if self.kind == "map":
            keyed = {"type": "map", "key-id": self.id + 1, "key": "string"}
            return keyed | {"value-id": self.id + 2, "value-required": False, "value": "long"}
        return ICEBERG[self.kind]

    def value(self, number: int) -> object:
        """Return the value of the column in the row of this number."""
        if self.kind == "struct":
            return {part.id: part.value(number) for part in self.parts}
        values = {
            "boolean": number % 2 == 0,
            "date": date(2026, 1, 1) + timedelta(number),
            "list": [number, None],
            "map": {"k": number},
            "float": number / 2,
            "double": number / 2,
            "integer": number,
            "long": number,
        }
        if self.kind.startswith("decimal"):
            return Decimal(number).quantize(Decimal("0.01"))
        return values.get(self.kind, f"v{number}")

    def read(self, row: dict[int, object]) -> object:
        """Return the value that a reader finds in a row, which is stored by field ids."""
        value = row.get(self.id)
        if self.kind == "struct" and isinstance(value, dict):
            return {part.name: part.read(value) for part in self.parts}
        return value


class Alter(NamedTuple):
    """One change of a table: its kind, column and value."""

    does: str
    path: Path = ()
    word: str = ""
    after: str | None = None
    """The preceding column; `first` for the front, None for the present position, or the end."""


class AlterRefused(Exception):
    """The alter is not allowed."""


class TableModel:
    """The expected state of the table."""

    def __init__(self) -> None:
        self.columns = [
            ModelColumn(id=1, name=KEY, kind="long", nullable=False),
            ModelColumn(id=2, name="c2", kind="integer", nullable=False),
            ModelColumn(id=3, name="c3", kind="varchar(20)"),
        ]
        self.last_id = 3
        self.properties: dict[str, str] = {}
        self.comment: str | None = None
        self.rows: list[dict[int, object]] = []

    def write(self) -> Json:
        """Add a row; returns it by the current column names."""
        number = len(self.rows) + 1
        row = {column.id: column.value(number) for column in self.columns}
        self.rows.append(row)
        return {column.name: column.read(row) for column in self.columns}

    def read(self) -> list[Json]:
        """Return all rows, in their order, by the current column names."""
        return [{column.name: column.read(row) for column in self.columns} for row in self.rows]

    # -- lookups ------------------------------------------------------------------------------------------------

    def beside(self, path: Path) -> list[ModelColumn]:
        """Return the columns among which the last part of a path is."""
        columns = self.columns
        for name in path[:-1]:
            columns = next(each for each in columns if each.name == name).parts
        return columns

    def find(self, path: Path) -> ModelColumn:
        """Return the column of a path."""
        for each in self.beside(path):
            if each.name == path[-1]:
                return each
        raise AlterRefused(path)

    def paths(self) -> Iterator[Path]:
        """Return the paths of all columns and fields."""
        for column in self.columns:
            yield (column.name,)
            yield from ((column.name, part.name) for part in column.parts)

    # -- changes ------------------------------------------------------------------------------------------------

    def apply(self, alter: Alter) -> None:
        """Alter the table. Raises AlterRefused; the caller must then discard the model."""
        getattr(self, f"_{alter.does}")(alter)

    def settle(self, before: int) -> None:
        """Finish the alters of one request: an id that no remaining column has was not assigned."""
        last_ids = [each.id + SLOTS.get(each.kind, 0) for column in self.columns for each in (column, *column.parts)]
        self.last_id = max(before, *last_ids)

    def _next(self) -> int:
        self.last_id += 1
        return self.last_id

    def _add(self, alter: Alter) -> None:
        beside = self.beside(alter.path)
        if any(each.name == alter.path[-1] for each in beside):
            raise AlterRefused(alter)
        column = ModelColumn(id=self._next(), name=alter.path[-1], kind=alter.word)
        if alter.word == "struct":
            column.parts = [ModelColumn(id=self._next(), name=name, kind="integer") for name in PARTS]
        self.last_id += SLOTS.get(alter.word, 0)
        beside.append(column)
        self._put(beside, column, after=alter.after)

    def _put(self, beside: list[ModelColumn], column: ModelColumn, *, after: str | None) -> None:
        if after is not None:
            beside.remove(column)
            places = {each.name: index + 1 for index, each in enumerate(beside)} | {"first": 0}
            beside.insert(places[after], column)

    def _rename(self, alter: Alter) -> None:
        column = self.find(alter.path)
        if any(each.name == alter.word for each in self.beside(alter.path) if each is not column):
            raise AlterRefused(alter)
        column.name = alter.word

    def _retype(self, alter: Alter) -> None:
        column = self.find(alter.path)
        if alter.word not in WIDER.get(column.kind, ()):
            raise AlterRefused(alter)
        column.kind = alter.word

    def _comment(self, alter: Alter) -> None:
        self.find(alter.path).comment = alter.word

    def _loosen(self, alter: Alter) -> None:
        self.find(alter.path).nullable = True

    def _tighten(self, alter: Alter) -> None:
        if self.find(alter.path).nullable:
            raise AlterRefused(alter)

    def _move(self, alter: Alter) -> None:
        self._put(self.beside(alter.path), self.find(alter.path), after=alter.after)

    def _delete(self, alter: Alter) -> None:
        self.beside(alter.path).remove(self.find(alter.path))

    def _property(self, alter: Alter) -> None:
        self.properties[alter.path[0]] = alter.word

    def _forget(self, alter: Alter) -> None:
        self.properties.pop(alter.path[0], None)

    def _about(self, alter: Alter) -> None:
        self.comment = alter.word


# -------------------------------------------------------------------------------------------------- random alters


def drawn(model: TableModel, dice: random.Random, *, over_gravitino: bool) -> Alter:
    """Return a random alter that is allowed."""
    does = dice.choice(
        (
            "add",
            "add",
            "add",
            "part",
            "rename",
            "rename",
            "retype",
            "comment",
            "loosen",
            "move",
            "delete",
            "property",
            "forget",
            "about",
        )
    )
    serial, paths = dice.randrange(10**6), list(model.paths())
    path = dice.choice(paths)
    structs = [column.name for column in model.columns if column.kind == "struct"]
    if does == "part" and structs:
        return Alter("add", (dice.choice(structs), f"p{serial}"), dice.choice(("integer", "string", "date")))
    if does in ("add", "part"):
        known = NEW_TYPES if over_gravitino else (*PYICEBERG, *NESTED)
        return Alter("add", (f"c{serial}",), dice.choice(known), _place(model, (f"c{serial}",), dice))
    if does == "retype":
        known = {p: _wider(model.find(p).kind, over_gravitino=over_gravitino) for p in paths}
        path = dice.choice([p for p in paths if known[p]] or [()])
        return Alter("retype", path, dice.choice(known[path])) if path else Alter("property", ("k0",), "v")
    if does == "rename":
        return (
            Alter("rename", path, f"r{serial}")
            if path[-1] not in (KEY, *PARTS[:1])
            else Alter("comment", path, f"{serial}")
        )
    if does == "move":
        return Alter("move", path, after=_place(model, path, dice) or "first")
    if does == "delete" and path[-1] not in (KEY, *PARTS[:1]):
        return Alter("delete", path)
    if does in ("property", "forget"):
        return Alter(does, (f"k{serial % 3}",), f"v{serial}")
    if does in ("about", "delete"):
        return Alter("about", word=f"about {serial}")
    return Alter(does, path, f"says {serial}")


def _wider(kind: str, *, over_gravitino: bool) -> list[str]:
    """Return the types to which a column can be changed. To Iceberg a varchar is a string, so that change is left
    out.
    """
    return [
        word for word in WIDER.get(kind, ()) if over_gravitino or (word in PYICEBERG and ICEBERG[word] != ICEBERG[kind])
    ]


def _place(model: TableModel, path: Path, dice: random.Random) -> str | None:
    """Return a random position of a column: first, after another column, or none."""
    others = [each.name for each in model.beside(path) if each.name != path[-1]]
    return dice.choice(("first", None, *others))


def wrong(model: TableModel, dice: random.Random) -> Alter:
    """Return a random alter that is not allowed."""
    narrow = [path for path in model.paths() if model.find(path).kind in NARROWER]
    nullable = [path for path in model.paths() if model.find(path).nullable]
    existing_names = [column.name for column in model.columns if column.name != KEY]
    alters = [Alter("add", (KEY,), "long"), Alter("rename", ("nowhere",), "x"), Alter("delete", ("nowhere",))]
    alters += [Alter("retype", path, NARROWER[model.find(path).kind]) for path in narrow[:1]]
    alters += [Alter("tighten", path) for path in nullable[:1]] + [
        Alter("rename", (KEY,), name) for name in existing_names[:1]
    ]
    return dice.choice(alters)


# ---------------------------------------------------------------------------------------- forms of the protocols


def _position(after: str | None) -> object:
    return after if after in (None, "first") else {"after": after}


def for_gravitino(alter: Alter) -> Json:
    """Return an alter as an update of Gravitino's request."""
    path = list(alter.path)
    if alter.does == "add":
        kind = ModelColumn(
            id=0, name="", kind=alter.word, parts=[ModelColumn(id=0, name=name, kind="integer") for name in PARTS]
        ).gravitino()["type"]
        return {
            "@type": "addColumn",
            "fieldName": path,
            "type": kind,
            "position": _position(alter.after),
            "nullable": True,
        }
    updates: dict[str, Json] = {
        "rename": {"@type": "renameColumn", "oldFieldName": path, "newFieldName": alter.word},
        "retype": {"@type": "updateColumnType", "fieldName": path, "newType": alter.word},
        "comment": {"@type": "updateColumnComment", "fieldName": path, "newComment": alter.word},
        "loosen": {"@type": "updateColumnNullability", "fieldName": path, "nullable": True},
        "tighten": {"@type": "updateColumnNullability", "fieldName": path, "nullable": False},
        "move": {"@type": "updateColumnPosition", "fieldName": path, "newPosition": _position(alter.after)},
        "delete": {"@type": "deleteColumn", "fieldName": path, "ifExists": False},
        "property": {"@type": "setProperty", "property": "".join(path), "value": alter.word},
        "forget": {"@type": "removeProperty", "property": "".join(path)},
        "about": {"@type": "updateComment", "newComment": alter.word},
    }
    return updates[alter.does]


def _new_type(word: str) -> IcebergType:
    if word == "struct":
        return StructType(*(NestedField(number, name, IntegerType()) for number, name in enumerate(PARTS, 1)))
    if word == "list":
        return ListType(1, IntegerType(), element_required=False)
    if word == "map":
        return MapType(1, StringType(), 2, LongType(), value_required=False)
    return PYICEBERG[word]


def for_pyiceberg(alter: Alter, update: UpdateSchema) -> None:
    """Apply an alter of columns with PyIceberg."""
    path = alter.path
    if alter.does == "add":
        update.add_column(path, _new_type(alter.word))
    if alter.does == "rename":
        update.rename_column(path, alter.word)
    if alter.does == "retype":
        update.update_column(path, field_type=PYICEBERG[alter.word])
    if alter.does == "comment":
        update.update_column(path, doc=alter.word)
    if alter.does == "loosen":
        update.make_column_optional(path)
    if alter.does == "delete":
        update.delete_column(path)
    if alter.does in ("add", "move") and alter.after is not None:
        if alter.after == "first":
            update.move_first(path)
        else:
            update.move_after(path, (*path[:-1], alter.after))
