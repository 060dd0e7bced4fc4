# SPDX-License-Identifier: Apache-2.0
"""The users on whose behalf tables are maintained by a policy: its author and the user who attached it."""

from __future__ import annotations

import pytest

from limnos.store.sql import Sql
from tests.http.driver import API, OWN, DriverNode, grant
from tests.rooms.maintenance.services.histories import HistoryTable, add_policy, assess, explained, set_clock
from tests.rooms.maintenance.services.test_operations import EXPIRATION, NOW_MS, ask, list_operations, maintain, work

pytestmark = pytest.mark.slow

RIGHTS = "use_catalog use_schema select_table modify_table"
ATTACH = f"{API}/lake/objects/catalog/main/policies"


@pytest.fixture
def table(lake: DriverNode) -> HistoryTable:
    """A table with twelve old snapshots, and a policy `p` of its catalog that `steward` wrote and `keeper` attached.

    Both may maintain the table.
    """
    history_table = HistoryTable(lake)
    history_table.append(12)
    set_clock(lake, NOW_MS)
    assess(lake)
    grant(lake, "steward", "create_policy", kind="METALAKE", on="lake")
    grant(lake, "steward", RIGHTS, kind="CATALOG", on="main")
    body = {"name": "p", "policyType": EXPIRATION, "enabled": True, "content": {}}
    lake.done("POST", f"{API}/lake/policies", body, user="steward")
    grant(lake, "keeper", RIGHTS, kind="CATALOG", on="main")
    lake.done("PUT", f"{API}/lake/owners/catalog/main", {"name": "keeper", "type": "USER"})
    grant(lake, "keeper", "apply_policy", kind="METALAKE", on="lake")
    lake.done("POST", ATTACH, {"policiesToAdd": ["p"]}, user="keeper")
    lake.done("PUT", f"{API}/lake/owners/catalog/main", {"name": "admin", "type": "USER"})
    return history_table


def revoke_modify(lake: DriverNode, user: str) -> None:
    """Deny a user the right to modify tables."""
    grant(lake, user, "modify_table", kind="CATALOG", on="main", condition="deny")


def write_content(lake: DriverNode, user: str, **content: int) -> None:
    """Write the content of the policy."""
    update = {"@type": "updateContent", "policyType": EXPIRATION, "newContent": content}
    lake.done("PUT", f"{API}/lake/policies/p", {"updates": [update]}, user=user)


def test_policy_is_executed_in_the_name_of_its_author(lake: DriverNode, table: HistoryTable) -> None:
    """The operation has the author's name, also if the policy has another owner since."""
    lake.done("PUT", f"{API}/lake/owners/policy/p", {"name": "admin", "type": "USER"})
    maintain(lake)

    assert table.ids() == [12]
    (row,) = list_operations(lake)
    assert (row["state"], row["user"], row["policy"]) == ("done", "steward", "p")
    assert explained(lake)["blocked"] == []


@pytest.mark.parametrize("user", ["steward", "keeper"])
@pytest.mark.parametrize("change", ["right", "disabled", "dropped"])
def test_policy_without_the_rights_of_both_users_changes_nothing(
    lake: DriverNode, table: HistoryTable, user: str, change: str
) -> None:
    """If the author or the user who attached the policy lacks the right, or is disabled or removed, the operation
    fails, and the explanation of the table tells why. The policy's owner does not matter.
    """
    lake.done("PUT", f"{API}/lake/owners/policy/p", {"name": "admin", "type": "USER"})
    if change == "right":
        revoke_modify(lake, user)
    elif change == "disabled":
        assert lake.patch(f"{OWN}/metalakes/lake/users/{user}", {"enabled": False}).status == 200
    else:
        lake.done("DELETE", f"{API}/lake/users/{user}")
    maintain(lake)

    assert len(table.ids()) == 12
    (row,) = list_operations(lake)
    who = "author of policy p" if user == "steward" else "user who attached policy p"
    expected = {"right": f"User '{user}' is not authorized", "disabled": f"{who} is disabled"}
    reason = expected.get(change, f"{who} is unknown or no longer a user")
    assert (row["state"], reason in row["result"]) == ("failed", True), row
    assert [reason in each for each in explained(lake)["blocked"]] == [True]


def test_author_who_gave_the_policy_away_lends_no_right_to_the_new_content(
    lake: DriverNode, table: HistoryTable
) -> None:
    """A user without rights on the table who writes the content becomes its author: the policy then does nothing, and
    an administrator to whom it is given does not change that.
    """
    grant(lake, "eve", "use_catalog", kind="CATALOG", on="main")
    lake.done("PUT", f"{API}/lake/owners/policy/p", {"name": "eve", "type": "USER"})
    write_content(lake, "eve", retainLast=1)
    lake.done("PUT", f"{API}/lake/owners/policy/p", {"name": "admin", "type": "USER"})
    maintain(lake)

    assert len(table.ids()) == 12
    (row,) = list_operations(lake)
    assert (row["state"], row["user"]) == ("failed", "eve")


def test_enabling_a_policy_makes_its_author(lake: DriverNode, table: HistoryTable) -> None:
    """A user without rights on the table who enables a disabled policy becomes its author, one who renames it does
    not.
    """
    grant(lake, "eve", "use_catalog", kind="CATALOG", on="main")
    lake.done("PUT", f"{API}/lake/owners/policy/p", {"name": "eve", "type": "USER"})
    rename = {"@type": "rename", "newName": "q"}
    lake.done("PUT", f"{API}/lake/policies/p", {"updates": [rename]}, user="eve")
    assert explained(lake)["blocked"] == []
    for is_enabled in (False, True):
        assert lake.patch(f"{API}/lake/policies/q", {"enable": is_enabled}, user="eve").status == 200

    assert ["User 'eve' is not authorized" in each for each in explained(lake)["blocked"]] == [True]


def test_attachment_of_an_earlier_release_needs_to_be_repeated(lake: DriverNode, table: HistoryTable) -> None:
    """An attachment whose user is unknown gives no right, until the policy is attached again."""
    services, permit = lake.built.services, lake.built.upkeep._permit
    unknown = Sql("UPDATE policy_object SET attached_by = 0")
    lake.runner.run(services.store.submit(permit, lambda tx: tx.count(unknown, {})))
    maintain(lake)
    (row,) = list_operations(lake)
    assert (row["state"], "detach it and attach it again" in row["result"]) == ("failed", True)
    lake.done("POST", ATTACH, {"policiesToRemove": ["p"]})
    lake.done("POST", ATTACH, {"policiesToAdd": ["p"]})

    assert explained(lake)["blocked"] == []


def test_explanation_hides_the_name_of_a_policy_that_the_caller_may_not_load(
    lake: DriverNode, table: HistoryTable
) -> None:
    """The reason names the policy only to users who may load it."""
    grant(lake, "writer", RIGHTS, kind="CATALOG", on="main")
    lake.done("DELETE", f"{API}/lake/users/keeper")

    (reason,) = explained(lake, user="writer")["blocked"]
    assert reason.startswith("the user who attached a policy that you may not load is unknown")


def test_requested_expiry_fails_if_the_policy_has_changed(lake: DriverNode, table: HistoryTable) -> None:
    """An expiry acts for the user who requested it, so it fails if the policy's content has changed since."""
    assert ask(lake).status == 200
    write_content(lake, "steward", retainLast=2)
    work(lake)

    (row,) = list_operations(lake)
    assert (row["state"], "has changed since" in row["result"], len(table.ids())) == ("failed", True, 12), row


def test_two_policies_of_a_type_act_for_their_own_authors(lake: DriverNode, table: HistoryTable) -> None:
    """Of two policies on one object, the one that applies acts for its own author."""
    add_policy(lake, "a-first", EXPIRATION, {"retainLast": 4}, on="main", kind="catalog")
    maintain(lake)

    (row,) = list_operations(lake)
    assert (row["user"], row["policy"]) == ("admin", "a-first")
