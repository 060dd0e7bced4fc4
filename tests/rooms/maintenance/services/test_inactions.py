# SPDX-License-Identifier: Apache-2.0
"""The maintenance explanation says for each finding why no operation repairs it."""

from __future__ import annotations

import pytest

from tests.http.driver import API, DriverNode, grant
from tests.rooms.maintenance.services.histories import DAY_MS, FIRST_MS, HistoryTable, add_policy, explained, set_clock

WHOLE = "system_iceberg_table_maintenance"


@pytest.fixture
def small(node: DriverNode) -> DriverNode:
    """A node with a table of twelve small files."""
    HistoryTable(node).append(12)
    set_clock(node, FIRST_MS + 30 * DAY_MS)
    return node


def test_explanation_names_settings_that_are_off(small: DriverNode) -> None:
    """The explanation names the settings that would cause an operation, while they are off."""
    before = explained(small)["inactions"]
    services = small.built.services
    services.defaults = services.defaults._replace(
        maintenance=services.defaults.maintenance._replace(rewrite=True, expire=True)
    )

    assert before == {
        "compact": "no policy decides about it, and the setting maintenance.rewrite_files is off",
        "expire": "no policy decides about it, and the setting maintenance.expire_snapshots is off",
    }
    assert explained(small)["inactions"] == {}


def test_explanation_names_the_policy_that_disables_compaction(small: DriverNode) -> None:
    """The explanation names a policy with `compact` false, and a disabled policy, to users who may load them."""
    add_policy(small, "w", WHOLE, {"compact": False}, on="main", kind="catalog")
    grant(small, "writer", "use_catalog use_schema modify_table select_table", kind="CATALOG", on="main")
    explanation = explained(small)
    hidden = explained(small, user="writer")["inactions"]["compact"]
    assert small.patch(f"{API}/lake/policies/w", {"enable": False}).status == 200
    disabled = explained(small)

    (policy,) = explanation["policies"]
    assert (policy["turned_off"], "compact" in policy["decides"]) == (["compact", "deletes"], True)
    assert (explanation["inactions"]["compact"], hidden) == ("off in policy w", "off in a policy that you may not load")
    assert disabled["inactions"]["compact"] == "policy w decides about it and is disabled"


def test_finding_covered_by_a_policy_has_no_inaction_reason(small: DriverNode) -> None:
    """The explanation gives no reason for inaction for a finding that an enabled policy covers."""
    add_policy(small, "w", WHOLE, {}, on="main", kind="catalog")

    assert "compact" not in explained(small)["inactions"]
