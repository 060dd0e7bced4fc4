# SPDX-License-Identifier: Apache-2.0
"""Items of Scala's collections, as Spark's plans have them. Needs a classic session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def scala_items(collection: Any) -> Iterator[Any]:  # noqa: ANN401 - Spark's own
    """Return the items of a Scala collection in its order."""
    walk = collection.iterator()
    while walk.hasNext():
        yield walk.next()
