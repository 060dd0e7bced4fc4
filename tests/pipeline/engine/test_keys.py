"""Keys of rows that are merged: NULL ones and doubled ones are counted and shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from limnos.pipeline.engine.keys import KeysBroken, keys_finding, require_keys

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_each_row_has_a_key_of_its_own(here: SparkSession) -> None:
    """Where it is so the finding holds, also for no rows at all."""
    frame = here.sql("SELECT * FROM VALUES (1, 'a'), (1, 'b'), (2, 'a') AS t(`k 1`, k2)")

    found = keys_finding(frame, ("k 1", "k2"))
    empty = keys_finding(frame.where("k2 = 'z'"), ("k 1",))

    assert (found.held, found.checked, found.broken, found.sample) == (True, 3, 0, None)
    assert (empty.held, empty.checked) == (True, 0)


def test_null_and_doubled_keys_are_told(here: SparkSession) -> None:
    """Every row of a doubled key counts, a NULL in any column of the key counts as that alone, and the worst are shown."""
    rows = "(1, 'a'), (1, 'a'), (1, 'a'), (2, 'b'), (2, 'b'), (NULL, 'c'), (3, NULL), (4, 'd')"
    frame = here.sql(f"SELECT * FROM VALUES {rows} AS t(k1, k2)")

    found = keys_finding(frame, ("k1", "k2"))

    assert (found.held, found.checked, found.broken) == (False, 8, 7)
    assert found.message.startswith("2 rows have a NULL in their key (k1, k2), 5 share it with another row: ")
    assert (found.sample or "").startswith("k1=1, k2='a' (3 rows); k1=2, k2='b' (2 rows); ")
    with pytest.raises(KeysBroken, match=r"Step marts\.t: 2 rows have a NULL .* Nothing was written") as error:
        require_keys(frame, ("k1", "k2"), step="marts.t")
    assert error.value.finding == found
