# SPDX-License-Identifier: Apache-2.0
"""Random types, and objects that fit them."""

from __future__ import annotations

import math
import random
import uuid
from typing import get_args

from limnos.rooms.sqlpp.language.stored import (
    AnyType,
    ArrayType,
    BagType,
    DeclaredType,
    FieldType,
    RecordType,
    Scalar,
    StorageForm,
)
from limnos.rooms.sqlpp.language.values.model import (
    MISSING,
    Bag,
    Circle,
    Date,
    DateTime,
    DayTimeDuration,
    Duration,
    Float,
    Geometry,
    Integer,
    Interval,
    Line,
    Point,
    Point3D,
    Polygon,
    Rectangle,
    ScalarName,
    SmallInt,
    Time,
    TinyInt,
    Value,
    YearMonthDuration,
)

NAMES = ("id", "A", "a", "b.c", "_open", "é", "$date", "select", "x y", "", "n`q")
SCALARS: tuple[ScalarName, ...] = get_args(ScalarName)


def scalar(of: random.Random, name: ScalarName) -> Value:
    """Return a value of a type, often an unusual one."""
    whole = of.choice((0, 1, -1, 7, 100))
    samples: dict[str, Value] = {
        "boolean": of.random() < 0.5,
        "tinyint": TinyInt(of.choice((-128, 127, whole))),
        "smallint": SmallInt(of.choice((-(2**15), 2**15 - 1, whole))),
        "integer": Integer(of.choice((-(2**31), 2**31 - 1, whole))),
        "bigint": of.choice((-(2**63), 2**63 - 1, 2**53 + 1, whole)),
        "float": Float(of.choice((0.1, -0.0, math.inf, 1e38, 3.0))),
        "double": of.choice((0.1, 1.0, -0.0, math.inf, -math.inf, 5e-324, 1e300, float(whole))),
        "string": of.choice(("", "a", "日本", "\x00", '"\\\n', "𝄞", "2012-01-01")),
        "binary": of.choice((b"", b"\x00\xff", b"abc")),
        "uuid": uuid.UUID(int=of.getrandbits(128)),
        "date": Date(of.choice((0, -1, 15_000, -719_529, 3_000_000))),
        "time": Time(of.choice((0, 1, 86_399_999, 3_600_000))),
        "datetime": DateTime(of.choice((0, -1, 1_353_369_600_123, -62_200_000_000_000))),
        "duration": Duration(of.choice((0, 14, -14)), of.choice((0, 1, -5_000, 86_400_000))),
        "year-month-duration": YearMonthDuration(of.choice((0, 14, -14))),
        "day-time-duration": DayTimeDuration(of.choice((0, 1, -86_400_001))),
        "interval": of.choice(
            (Interval(Date(-1), Date(3)), Interval(Time(0), Time(1)), Interval(DateTime(0), DateTime(9)))
        ),
        "point": Point((of.choice((0.1, -0.0, 1.0)), 2.0)),
        "point3d": Point3D((1.0, 1e300, -0.0)),
        "line": Line((0.0, 1.5, 2.0, 3.0)),
        "rectangle": Rectangle((0.0, 1.5, 2.0, 3.0)),
        "circle": Circle((0.0, 1.5, 5e-324)),
        "polygon": Polygon((0.0, 0.0, 1.0, 0.0, 1.0, 1.0)),
        "geometry": Geometry("0101000000000000000000F03F0000000000000040"),
    }
    return samples[name]


def anything(of: random.Random, depth: int = 3) -> Value:
    """Return any value that an object may contain."""
    kind = of.randrange(8 if depth else 5)
    if kind == 0:
        return None
    if kind < 5:
        return scalar(of, of.choice(SCALARS))
    if kind == 5:
        return tuple(of.choice((MISSING, anything(of, depth - 1))) for _ in range(of.randrange(3)))
    if kind == 6:
        return Bag(anything(of, depth - 1) for _ in range(of.randrange(3)))
    return {name: anything(of, depth - 1) for name in of.sample(NAMES, of.randrange(3))}


def type_of(of: random.Random, depth: int = 3) -> DeclaredType:
    """Any declared type."""
    kind = of.randrange(9 if depth else 5)
    if kind < 4:
        return Scalar(of.choice(SCALARS))
    if kind == 4:
        return AnyType()
    if kind == 5:
        return ArrayType(type_of(of, depth - 1))
    return BagType(type_of(of, depth - 1)) if kind == 6 else record(of, depth - 1)


def record(of: random.Random, depth: int = 3) -> RecordType:
    """A record type."""
    fields = [
        FieldType(name, type_of(of, depth), optional=of.random() < 0.5) for name in of.sample(NAMES, of.randrange(1, 6))
    ]
    return RecordType(tuple(fields), open=of.random() < 0.6)


def form(of: random.Random) -> StorageForm:
    """A dataset with a key."""
    record_type = record(of)
    key = FieldType("key", Scalar(of.choice(("bigint", "string", "uuid", "double", "time"))))
    return StorageForm(RecordType((key, *record_type.fields), open=record_type.open), (("key",),))


def fitting(of: random.Random, type_: DeclaredType) -> Value:
    """A value of a type."""
    if isinstance(type_, Scalar):
        return scalar(of, type_.name)
    if isinstance(type_, AnyType):
        value = anything(of)
        return 1 if value is None else value
    if isinstance(type_, ArrayType):
        return tuple(fitting(of, type_.item) for _ in range(of.randrange(3)))
    if isinstance(type_, BagType):
        return Bag(fitting(of, type_.item) for _ in range(of.randrange(3)))
    return fields(of, type_)


def fields(of: random.Random, type_: RecordType) -> dict[str, Value]:
    """Return an object of a type: optional fields are present, NULL or MISSING, and open types have other fields."""
    object_fields: dict[str, Value] = {}
    for field in type_.fields:
        chance = of.random() if field.optional else 1
        if chance > 0.5:
            object_fields[field.name] = fitting(of, field.type)
        elif chance > 0.25:
            object_fields[field.name] = None
    if type_.open:
        object_fields.update({f"more{at}": anything(of) for at in range(of.randrange(3))})
    return object_fields
