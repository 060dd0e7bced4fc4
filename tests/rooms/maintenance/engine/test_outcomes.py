# SPDX-License-Identifier: Apache-2.0
"""Results of operations as text."""

from __future__ import annotations

from typing import Any

import pytest

from limnos.model.errors import ServiceUnavailable
from limnos.rooms.maintenance.engine.executor import YIELDED
from limnos.rooms.maintenance.engine.outcomes import (
    RewriteCount,
    data_file_count,
    end_of_error,
    rewrite_text,
    table_identifier,
)


@pytest.mark.parametrize(
    "counts, text",
    [
        ([("files", 12, 1)], "12 files became 1"),
        ([("files", 3, 0)], "3 files became 0"),
        ([("files", 0, 0)], "nothing to rewrite"),
        ([("files", 0, 0), ("delete files", 3, 1)], "3 delete files became 1"),
        ([("files", 2, 1), ("delete files", 0, 0)], "2 files became 1"),
        ([("manifests", 0, 0)], "nothing to rewrite"),
        ([("files", 40, 2, 20)], "40 files became 2 (20 are unchanged: conflicts with other commits, or errors)"),
    ],
)
def test_rewrite_without_changes_is_reported_as_nothing_to_do(counts: list[tuple[Any, ...]], text: str) -> None:
    """Counts of zero are omitted; a rewrite with all counts at zero reports that there was nothing to do."""
    assert rewrite_text([RewriteCount(*each) for each in counts]) == text


def test_rewrite_is_retried_only_if_every_part_failed() -> None:
    """A rewrite whose parts all failed is retried; one that rewrote some files, or had none, is done."""
    with pytest.raises(ServiceUnavailable) as caught:
        data_file_count(0, 0, failed=40)

    assert end_of_error(caught.value).outcome == YIELDED
    assert data_file_count(20, 1, failed=20) == RewriteCount("files", 20, 1, 20)
    assert data_file_count(0, 0, failed=0) == RewriteCount("files", 0, 0)


@pytest.mark.parametrize(
    "path, text",
    [
        (("a", "t"), "`maintained`.`a`.`t`"),
        (("a`b", "`"), "`maintained`.`a``b`.````"),
        (("a.b", "t\\"), "`maintained`.`a.b`.`t\\`"),
    ],
)
def test_names_of_tables_are_quoted_for_spark_sql(path: tuple[str, ...], text: str) -> None:
    """Each part of a table's path is one quoted identifier, in which a back-quote is doubled."""
    assert table_identifier(path) == text
