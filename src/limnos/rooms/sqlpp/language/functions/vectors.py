# SPDX-License-Identifier: Apache-2.0
"""Functions on two vectors: arrays of numbers with the same length.

Must not know plans. The result is NULL for other arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from limnos.rooms.sqlpp.language.functions.collections import items
from limnos.rooms.sqlpp.language.functions.costs import linear_cost
from limnos.rooms.sqlpp.language.functions.numbers import number
from limnos.rooms.sqlpp.language.functions.table import scalar
from limnos.rooms.sqlpp.language.values.model import Value


def _vector(value: Value) -> list[float] | None:
    """Return the numbers of an array; None if it is empty or has an item that is not a number."""
    results = [number(item) for item in items(value) or ()]
    floats = [float(item) for item in results if item is not None]
    return floats if floats and len(floats) == len(results) else None


def _register_two_vectors(*names: str, work: Callable[[list[float], list[float]], float | None]) -> None:
    def run(value: Value, other: Value) -> Value:
        left, right = _vector(value), _vector(other)
        return work(left, right) if left and right and len(left) == len(right) else None

    scalar(*names, least=2, cost=linear_cost)(run)


def _dot(left: list[float], right: list[float]) -> float:
    return math.fsum(one * other for one, other in zip(left, right, strict=True))


def _squared_distance(left: list[float], right: list[float]) -> float:
    return math.fsum((one - other) ** 2 for one, other in zip(left, right, strict=True))


def _cosine(left: list[float], right: list[float]) -> float | None:
    """Return the cosine similarity; None if the norm of a vector is zero."""
    lengths = math.hypot(*left) * math.hypot(*right)
    return _dot(left, right) / lengths if lengths else None


_register_two_vectors("dot_product", work=_dot)
_register_two_vectors("cosine_similarity", work=_cosine)
_register_two_vectors("euclidean_distance", "l2_distance", work=math.dist)
_register_two_vectors("euclidean_squared_distance", "l2_squared_distance", work=_squared_distance)
