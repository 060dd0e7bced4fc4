# SPDX-License-Identifier: Apache-2.0
"""Commands about access agree with the server's decisions on a small random lake; a wrong answer is noticed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from conformance.access_commands.__main__ import compare, comparison_of
from tests.backends import Database

pytestmark = pytest.mark.heavy
LAKE = 28
"""The seed of the lake; `conformance/run access-commands` draws others."""


def test_commands_agree_with_decisions_on_a_random_lake(database: Database, tmp_path: Path) -> None:
    """`access who`, `what`, `diff`, `simulate`, `what --missing` and presets say what the server decides."""
    address = None if database.kind == "sqlite" else database.address
    with comparison_of(tmp_path, random.Random(LAKE), users=5, database=address) as comparison:
        compare(comparison, changes=3, cases=2)

        assert comparison.wrong == []
        assert comparison.decisions.count > 2_000

        comparison.users.remove("ana")
        comparison.compare_who(comparison.table())
        assert comparison.wrong, "a user whom the server allows more than the comparison expects is a disagreement"
