# SPDX-License-Identifier: Apache-2.0
"""Content of policies: options of Iceberg's rewrite actions, with a limit on concurrent file groups."""

from __future__ import annotations

import pytest

from limnos.formats.gravitino.policies import COMPACTION, CONCURRENT_GROUPS, concurrent_groups, content_text
from limnos.model.errors import BadRequest


@pytest.mark.parametrize("text, expected", [("1", "1"), ("20", "20"), ("21", "20"), ("0", "1"), ("x", "1"), ("²", "1")])
def test_old_concurrent_groups_are_clamped_to_limits(text: str, expected: str) -> None:
    """A stored number of concurrent groups from before the limit existed is replaced by the nearest allowed one."""
    assert concurrent_groups(text) == expected


@pytest.mark.parametrize("text", ["0", "21", "10000", "-1", "x", "", "007"])
def test_policy_with_groups_out_of_range_is_refused(text: str) -> None:
    """A policy whose number of concurrent groups is out of range is refused."""
    with pytest.raises(BadRequest, match="use 1 to 20"):
        content_text(COMPACTION, {"rewriteOptions": {CONCURRENT_GROUPS: text}})

    assert content_text(COMPACTION, {"rewriteOptions": {CONCURRENT_GROUPS: "20"}})
