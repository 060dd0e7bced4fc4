"""Results of operations as text."""

from __future__ import annotations

import pytest

from limnos.spark.maintenance.outcomes import RewriteCount, rewrite_text


@pytest.mark.parametrize(
    "counts, text",
    [
        ([("files", 12, 1)], "12 files became 1"),
        ([("files", 3, 0)], "3 files became 0"),
        ([("files", 0, 0)], "nothing to rewrite"),
        ([("files", 0, 0), ("delete files", 3, 1)], "3 delete files became 1"),
        ([("files", 2, 1), ("delete files", 0, 0)], "2 files became 1"),
        ([("manifests", 0, 0)], "nothing to rewrite"),
    ],
)
def test_rewrites_that_change_nothing_say_so(counts: list[tuple[str, int, int]], text: str) -> None:
    """Counts of zero are omitted; a rewrite without any other count had nothing to do."""
    assert rewrite_text([RewriteCount(*each) for each in counts]) == text
