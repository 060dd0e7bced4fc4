# SPDX-License-Identifier: Apache-2.0
"""docs/explain/datasets.md agrees with the code."""

from __future__ import annotations

import re
from pathlib import Path

from limnos.rooms.sqlpp.engine.sessions import RESULT_BYTES_MAX
from limnos.rooms.sqlpp.language.evaluator.budget import KEPT_MAX, STEPS_MAX
from limnos.rooms.sqlpp.language.relations.functions import CARRIED, KINDS
from limnos.rooms.sqlpp.language.stored.schema import FOREIGN, SCALARS

PAGE = (Path(__file__).parents[4] / "docs" / "explain" / "datasets.md").read_text(encoding="utf-8")


def test_every_type_is_documented() -> None:
    """Both tables of types have each type with its other name."""
    missing = [name for name, column in SCALARS.items() if f"\n| `{name}` | `{column}` |" not in PAGE]
    missing += [column for column, name in FOREIGN.items() if f"\n| `{column}` | `{name}` |\n" not in PAGE]

    assert missing == []


def test_every_aggregate_is_documented_with_its_types() -> None:
    """Each aggregate is listed with the types for which Spark computes it."""
    rows = [f"| `{name}` | {', '.join(f'`{type_}`' for type_ in sorted(types))} |" for name, types in KINDS.items()]

    assert [row for row in rows if row not in PAGE] == []


def test_documented_functions_are_those_of_spark() -> None:
    """The listed functions are exactly those that Spark computes."""
    (item,) = re.findall(r"^- these functions:(.*(?:\n  .*)*)", PAGE, flags=re.MULTILINE)

    assert set(re.findall(r"`(\w+)`", item)) == set(CARRIED)


def test_documented_limits_equal_those_of_code() -> None:
    """The numbers in the text are those of the code."""
    text = " ".join(PAGE.split())

    assert f"more than {STEPS_MAX // 1_000_000} million rows" in text
    assert f"keeps more than {KEPT_MAX // 1_000_000} million" in text
    assert f"more than {RESULT_BYTES_MAX >> 20} MiB" in text
