# SPDX-License-Identifier: Apache-2.0
"""Spans of data files: each row group is in one of them."""

from __future__ import annotations

from limnos.formats.restricting.spans import SPAN_BYTES, file_spans, span_count


def test_spans_cover_a_file_of_any_size() -> None:
    """The spans of a file join without gaps from its first byte, and the last one has no end."""
    for size in (0, 1, SPAN_BYTES, SPAN_BYTES + 1, 5 * SPAN_BYTES - 1):
        spans = file_spans(size)

        assert len(spans) == span_count(size)
        assert [each.start for each in spans[1:]] == [each.end for each in spans[:-1]]
        assert spans[0].start == 0
        assert spans[-1].end > 1 << 60


def test_huge_claimed_size_has_a_count_without_a_list() -> None:
    """The number of spans of a claimed size is known without a list of them, since a manifest may claim any size."""
    assert span_count(1 << 80) == (1 << 80) // SPAN_BYTES
