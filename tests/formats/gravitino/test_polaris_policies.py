# SPDX-License-Identifier: Apache-2.0
"""Translation of Polaris policies into this server's policies; parts without a counterpart are named."""

from __future__ import annotations

import json

import pytest

from limnos.formats.gravitino.polaris_policies import translate_policy
from limnos.formats.gravitino.policies import (
    COMPACTION,
    CUSTOM,
    ORPHAN_FILE_REMOVAL,
    SNAPSHOT_EXPIRATION,
    TABLE_MAINTENANCE,
)
from limnos.model.errors import BadRequest

VERSION = "2025-02-03"
CASES = [
    (
        "system.data-compaction",
        {"target_file_size_bytes": 1 << 27, "compaction_strategy": "bin-pack"},
        {},
        COMPACTION,
        {"rewriteOptions": {"target-file-size-bytes": str(1 << 27)}},
        ("config.compaction_strategy",),
    ),
    (
        "system.data-compaction",
        {"max-concurrent-file-group-rewrites": "5"},
        {},
        COMPACTION,
        {"rewriteOptions": {"max-concurrent-file-group-rewrites": "5"}},
        (),
    ),
    ("system.data-compaction", {}, {}, COMPACTION, {}, ()),
    (
        "system.metadata-compaction",
        {"key1": True},
        {},
        TABLE_MAINTENANCE,
        {"compact": None, "manifests": True, "indexes": None},
        ("config.key1",),
    ),
    (
        "system.orphan-file-removal",
        {"prefix_mismatch_mode": "ignore"},
        {"max_orphan_file_age_in_days": 30, "locations": ["s3://b/a"]},
        ORPHAN_FILE_REMOVAL,
        {"olderThanDays": 30},
        ("locations", "config.prefix_mismatch_mode"),
    ),
    (
        "system.orphan-file-removal",
        {},
        {"max_orphan_file_age_in_days": 1},
        ORPHAN_FILE_REMOVAL,
        {"olderThanDays": 3},
        (),
    ),
    (
        "system.snapshot-expiry",
        {"min_snapshot_to_keep": 1, "max_snapshot_age_days": "7", "max_ref_age_days": 3},
        {},
        SNAPSHOT_EXPIRATION,
        {"olderThanDays": 7, "retainLast": 1},
        ("config.max_ref_age_days",),
    ),
    (
        "system.snapshot-expiry",
        {"min_snapshot_to_keep": 0, "max_snapshot_age_days": 1.5},
        {},
        SNAPSHOT_EXPIRATION,
        {},
        ("config.max_snapshot_age_days", "config.min_snapshot_to_keep"),
    ),
]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("enable", [True, False])
def test_policy_values_are_translated(case: tuple, enable: bool) -> None:
    """Ages, numbers and sizes are translated. All other parts, and unusable values, are named as omitted."""
    policy_type, config, more, own_type, own, left_out = case
    text = json.dumps({"version": VERSION, "enable": enable, "config": config, **more})
    translated = translate_policy(policy_type, text)

    assert translated is not None
    content = {"compact": True, "manifests": True, "indexes": True, **json.loads(translated.content)}
    expected = {"compact": True, "manifests": True, "indexes": True, **own}
    assert (translated.policy_type, content, translated.enabled) == (own_type, expected, enable)
    assert translated.left_out == left_out


def test_unsupported_policies_are_not_translated() -> None:
    """A policy of this server is not translated. Content of another format, or with values out of range, is refused."""
    assert translate_policy(CUSTOM, "{}") is None
    assert translate_policy(COMPACTION, "{}") is None
    for text in ("{", "[]", "{}", '{"enable": "yes"}', '{"enable": true, "config": []}'):
        with pytest.raises(BadRequest, match=r"the content is not that of a policy system\.snapshot-expiry"):
            translate_policy("system.snapshot-expiry", text)
    with pytest.raises(BadRequest, match="olderThanDays"):
        translate_policy("system.snapshot-expiry", '{"enable": true, "config": {"max_snapshot_age_days": 9999999999}}')
