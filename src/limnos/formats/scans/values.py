# SPDX-License-Identifier: Apache-2.0
"""Converts values between JSON and pyiceberg: decodes literals of filters, and encodes values of partitions.

Must not know schemas. Source: Iceberg specification, Appendix D (JSON single-value serialization).
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, cast

from pyiceberg.expressions.literals import (
    BinaryLiteral,
    BooleanLiteral,
    DecimalLiteral,
    DoubleLiteral,
    FixedLiteral,
    Literal,
    LongLiteral,
    StringLiteral,
    UUIDLiteral,
)
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from limnos.model.errors import BadRequest

_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - timestamps without a zone
_DAY: Final = date(1970, 1, 1)
_COUNTED: Final = (DateType, TimeType, TimestampType, TimestamptzType)
_DIGITS_MAX: Final = 400
"""The maximum number of characters of a decimal in a filter."""
_DECIMAL: Final = re.compile(r"-?\d{1,400}(?:\.\d{1,400})?", re.ASCII)
"""PyIceberg writes `amount > 1.5` with a decimal, whose JSON is a string, for columns of every type."""


def literal_of(kind: IcebergType, value: object) -> Literal[Any]:
    """Parse a filter's literal for a column's type, in JSON single-value form or, for dates and times, as an integer in
    the internal unit.

    Raises BadRequest for a value of another type.
    """
    try:
        result = _read(kind, value)
    except (ValueError, ArithmeticError, TypeError) as error:
        raise _bad_literal(kind, value) from error
    if result is None:
        raise _bad_literal(kind, value)
    return result


def _bad_literal(kind: IcebergType, value: object) -> BadRequest:
    return BadRequest(
        f"The filter compares a column of type {kind} with {str(value)[:100]!r}, which is not such a value"
    )


def _read(kind: IcebergType, value: object) -> Literal[Any] | None:
    of_int: object = None
    if isinstance(value, bool):
        of_int = BooleanLiteral(value) if isinstance(kind, BooleanType) else None
    elif isinstance(value, int):
        of_int = _of_int(kind, value)
    elif isinstance(value, float):
        of_int = DoubleLiteral(value).to(kind) if isinstance(kind, (FloatType, DoubleType)) else None
    elif isinstance(value, str):
        of_int = _of_text(kind, value)
    return cast("Literal[Any] | None", of_int)


def _of_int(kind: IcebergType, value: int) -> object:
    if isinstance(kind, DecimalType):
        return DecimalLiteral(_scale_decimal(Decimal(value), kind))
    if isinstance(kind, (IntegerType, LongType, FloatType, DoubleType, *_COUNTED)):
        return LongLiteral(value).to(kind)
    return None


def _of_text(kind: IcebergType, value: str) -> object:
    if isinstance(kind, StringType):
        return StringLiteral(value)
    if isinstance(kind, DecimalType) and len(value) <= _DIGITS_MAX:
        return DecimalLiteral(_scale_decimal(Decimal(value), kind))
    if isinstance(kind, (FloatType, DoubleType)) and _DECIMAL.fullmatch(value):
        return DoubleLiteral(float(value)).to(kind)
    if isinstance(kind, UUIDType):
        return UUIDLiteral(uuid.UUID(value).bytes)
    if isinstance(kind, FixedType):
        data = bytes.fromhex(value)
        return FixedLiteral(data) if len(data) == len(kind) else None
    if isinstance(kind, BinaryType):
        return BinaryLiteral(bytes.fromhex(value))
    return StringLiteral(value).to(kind) if isinstance(kind, _COUNTED) else None


def _scale_decimal(value: Decimal, kind: DecimalType) -> Decimal:
    """Return a decimal with the scale of a column's type. Raises ValueError if it has more decimal places."""
    scaled = value.quantize(Decimal(1).scaleb(-kind.scale))
    if scaled != value:
        raise ValueError("more digits than the column has")
    return scaled


def partition_encoder(kind: IcebergType) -> Callable[[object], object]:
    """Return the function that encodes values of a partition field's type in JSON."""
    for sort, spell in _SPELLED:
        if isinstance(kind, sort):
            return spell
    return _plain


def _plain(value: object) -> object:
    return value


def _hex(value: object) -> object:
    return cast("bytes", value).hex().upper()


def _uuid(value: object) -> object:
    return str(value if isinstance(value, uuid.UUID) else uuid.UUID(bytes=cast("bytes", value)))


def _date(value: object) -> object:
    return (_DAY + timedelta(days=cast("int", value))).isoformat()


def _time(value: object) -> object:
    micros = cast("int", value)
    return (datetime.combine(_DAY, time()) + timedelta(microseconds=micros)).time().isoformat()


def _timestamp(value: object) -> object:
    return (_EPOCH + timedelta(microseconds=cast("int", value))).isoformat(timespec="microseconds")


def _nanos(value: object) -> object:
    micros, nanos = divmod(cast("int", value), 1000)
    return f"{_timestamp(micros)}{nanos:03d}"


def _zoned_nanos(value: object) -> object:
    return f"{_nanos(value)}+00:00"


def _zoned_timestamp(value: object) -> object:
    return f"{_timestamp(value)}+00:00"


_SPELLED: Final[tuple[tuple[type[IcebergType], Callable[[object], object]], ...]] = (
    (DateType, _date),
    (TimeType, _time),
    (TimestamptzType, _zoned_timestamp),
    (TimestampType, _timestamp),
    (TimestampNanoType, _nanos),
    (TimestamptzNanoType, _zoned_nanos),
    (DecimalType, str),
    (UUIDType, _uuid),
    (FixedType, _hex),
    (BinaryType, _hex),
)
