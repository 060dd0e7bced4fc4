"""Contents of policies: options of Iceberg's action, whose number of concurrent groups is bounded."""

from __future__ import annotations

import pytest

from limnos.formats.gravitino.policies import COMPACTION, CONCURRENT_GROUPS, concurrent_groups, content_text
from limnos.model.errors import BadRequest


@pytest.mark.parametrize("text, expected", [("1", "1"), ("20", "20"), ("21", "20"), ("0", "1"), ("x", "1"), ("²", "1")])
def test_concurrent_groups(text: str, expected: str) -> None:
    """The nearest allowed number is taken for what was stored before there was a bound."""
    assert concurrent_groups(text) == expected


@pytest.mark.parametrize("text", ["0", "21", "10000", "-1", "x", "", "007"])
def test_a_policy_with_too_many_groups_is_refused(text: str) -> None:
    """A policy names a number of groups within the bound, or none."""
    with pytest.raises(BadRequest, match="use 1 to 20"):
        content_text(COMPACTION, {"rewriteOptions": {CONCURRENT_GROUPS: text}})

    assert content_text(COMPACTION, {"rewriteOptions": {CONCURRENT_GROUPS: "20"}})
