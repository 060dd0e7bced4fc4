# SPDX-License-Identifier: Apache-2.0
"""Effective policies: random trees of policies compared with a small model, and contradicting policies."""

from __future__ import annotations

import random
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from limnos.formats.gravitino.policies import ROW_RETENTION, SNAPSHOT_EXPIRATION
from limnos.model.kinds import Kind
from limnos.rooms.maintenance.formats.assessment import AssessmentRules
from limnos.rooms.maintenance.formats.row_retention import RetentionRule
from limnos.rooms.maintenance.services.policies import EffectivePolicy, PolicyIndex, assessment_rules
from limnos.rooms.maintenance.services.rewriting.planning import find_requesting_policy
from limnos.store.activity.maintenance import PolicyAttachment
from tests.http.driver import API, DriverNode
from tests.rooms.maintenance.services.histories import DAY_MS, FIRST_MS, HistoryTable, add_policy, assess, set_clock
from tests.rooms.maintenance.services.rewriting.executor import list_operations
from tests.rooms.maintenance.services.rewriting.test_planning import COMPACTION, WHOLE, plan

TYPES = (COMPACTION, WHOLE, "system_iceberg_snapshot_expiration", "system_iceberg_orphan_file_removal")
WHOLE_CONTENTS = ("{}", '{"compact":false}', '{"manifests":false}', '{"compact":false,"manifests":false}')
CHAIN = (40, 30, 20, 10)
"""A table, its two namespaces from the inner to the outer one, and its catalog."""


def policy_node(number: int, random_: random.Random) -> Any:  # noqa: ANN401 - a node as the index sees it
    """Return a policy of some type."""
    policy_type = random_.choice(TYPES)
    content = random_.choice(WHOLE_CONTENTS) if policy_type == WHOLE else "{}"
    record = SimpleNamespace(policy_type=policy_type, enabled=random_.random() < 0.7, content=content, writer_id=1)
    return SimpleNamespace(id=number, name=f"p{random_.randrange(1000)}-{number}", kind=Kind.POLICY, record=record)


def model_effective(attached: list[tuple[int, Any]], policy_type: str) -> Any:  # noqa: ANN401 - a policy or None
    """Return the effective policy of a type by the model: the first by name on the nearest object."""
    here = [(CHAIN.index(on), node.name, node) for on, node in attached if node.record.policy_type == policy_type]
    return min(here, key=lambda each: each[:2], default=(0, "", None))[2]


def model_asking(attached: list[tuple[int, Any]], kind: str) -> str | None:
    """Return the name of the policy that requests a kind by the model: the nearest policy that has the kind decides."""
    types = (WHOLE,) if kind == "manifests" else (COMPACTION, WHOLE)
    known = [
        (CHAIN.index(on), types.index(node.record.policy_type), node.name, node)
        for on, node in attached
        if node.record.policy_type in types
    ]
    if not known:
        return None
    node = min(known, key=lambda each: each[:3])[3]
    word = "manifests" if kind == "manifests" else "compact"
    says_no = node.record.policy_type == WHOLE and f'"{word}":false' in node.record.content
    return node.name if node.record.enabled and not says_no else None


@pytest.mark.parametrize("seed", range(200))
def test_effective_policies_in_a_random_tree_match_the_model(seed: int) -> None:
    """The effective policy of each type, and the policy for each kind, equal those of the model."""
    random_ = random.Random(seed)
    policies = [policy_node(number, random_) for number in range(1, random_.randrange(2, 9))]
    attached = [(random_.choice(CHAIN), node) for node in policies]
    index = PolicyIndex(policies, [PolicyAttachment(node.id, on, 1) for on, node in attached])
    effective = index.effective(CHAIN)

    for policy_type in TYPES:
        expected = model_effective(attached, policy_type)
        assert effective.get(policy_type) is None if expected is None else effective[policy_type].id == expected.id
    for kind in ("compact", "deletes", "manifests"):
        asking = find_requesting_policy(effective, kind)
        assert (None if asking is None else asking.name) == model_asking(attached, kind)


@pytest.mark.parametrize(
    "near_type, near_content, is_enabled, planned",
    [
        (COMPACTION, {}, False, 0),
        (WHOLE, {"compact": False}, True, 0),
        (WHOLE, {}, False, 0),
        (COMPACTION, {}, True, 1),
    ],
)
def test_table_policy_overrides_a_contradicting_catalog_policy(
    node: DriverNode, near_type: str, near_content: dict[str, object], *, is_enabled: bool, planned: int
) -> None:
    """A table's own policy overrides the catalog's policy of another type, whether it enables or disables
    compaction.
    """
    far_type = WHOLE if near_type == COMPACTION else COMPACTION
    HistoryTable(node).append(12)
    set_clock(node, FIRST_MS + 30 * DAY_MS)
    assess(node)
    add_policy(node, "far", far_type, {}, on="main", kind="catalog")
    add_policy(node, "near", near_type, near_content, on="main.a.t", kind="table")
    if not is_enabled:
        assert node.patch(f"{API}/lake/policies/near", {"enable": False}).status == 200

    assert plan(node) == planned
    assert [each["policy"] for each in list_operations(node)] == ["near"] * planned


CONTENTS = {
    WHOLE: '{"minDeleteFileNumber": 3}',
    COMPACTION: '{"minDataFileMse": 5, "minDeleteFileNumber": 4}',
    SNAPSHOT_EXPIRATION: '{"olderThanDays": 2, "retainLast": 6, "minSnapshotCount": 7}',
    ROW_RETENTION: '{"column": "day", "olderThanDays": 8}',
}


@pytest.mark.parametrize("states", list(product([None, False, True], repeat=4)))
def test_thresholds_are_those_of_the_enabled_policies(states: tuple[bool | None, ...]) -> None:
    """Each threshold is that of the enabled policy that has it, whatever other policies the table has, and the default
    without one: a disabled policy sets nothing, and no policy resets a threshold of another one.
    """
    by_type = dict(zip(CONTENTS, states, strict=True))
    rules = assessment_rules(
        {
            each: EffectivePolicy(
                id=at,
                name=f"p{at}",
                policy_type=each,
                is_enabled=bool(by_type[each]),
                content=CONTENTS[each],
                object_id=40,
            )
            for at, each in enumerate(CONTENTS)
            if by_type[each] is not None
        }
    )

    expected = AssessmentRules()
    if by_type[WHOLE]:
        expected = replace(expected, delete_files_min=3)
    if by_type[COMPACTION]:
        expected = replace(expected, delete_files_min=4, data_file_mse_min=5)
    if by_type[SNAPSHOT_EXPIRATION]:
        expected = replace(expected, older_than_ms=2 * DAY_MS, retain_last=6, snapshots_min=7)
    if by_type[ROW_RETENTION]:
        expected = replace(expected, retention=RetentionRule("day", 8))
    assert rules == expected
