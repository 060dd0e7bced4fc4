# SPDX-License-Identifier: Apache-2.0
"""Documents with one random part altered, as another writer's defect could leave it in a file to register.

Job: a document in, the same with one value missing, twice, or of another kind out. May import nothing. It must not know
what documents mean.
"""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Final, TypeAlias, cast

Path: TypeAlias = tuple[str | int, ...]
VALUES: Final = (None, "", "x", -1, 0, 1, 2, 2**31, 2**63, 5.5, True, [], {}, [None], [{}], {"a": 5})
TOP_SHARE: Final = 0.3
"""The share of alterations of a field of the document itself."""


def altered(document: dict[str, object], random: Random) -> dict[str, object]:
    """Return a copy of a document with one part removed, repeated, or replaced by a similar or another value."""
    result = cast("dict[str, object]", json.loads(json.dumps(document)))
    path: Path = (random.choice(list(result)),) if random.random() < TOP_SHARE else random.choice(_paths(result, ()))
    holder: object = result
    for step in path[:-1]:
        holder = holder[step]  # type: ignore[index]
    _alter(cast("dict[str | int, object]", holder), path[-1], random)
    return result


def _paths(value: object, prefix: Path) -> list[Path]:
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    paths = []
    for key, part in parts:
        paths += [(*prefix, key), *_paths(part, (*prefix, key))]
    return paths


def _alter(holder: dict[str | int, object], key: str | int, random: Random) -> None:
    value = holder[key]
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    match random.randrange(6):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, list):
            holder.append(copy.deepcopy(value))
        case 2 if is_integer:
            holder[key] = str(value)
        case 3 if isinstance(value, int):
            holder[key] = value + random.choice((-1, 1, 100))
        case 3 if isinstance(value, str):
            holder[key] = random.choice((value.upper(), f" {value}"))
        case _:
            holder[key] = random.choice(VALUES)
