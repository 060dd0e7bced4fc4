# SPDX-License-Identifier: Apache-2.0
"""`restriction set` says what a replacement loses; `restriction remove` of a missing one is not found."""

from __future__ import annotations

import pytest

from limnos.cli.failures import UsageError
from limnos.cli.governance.restrictions import _masks
from tests.cli.conftest import Run
from tests.client.fake import FakeServer

URL = "/api/limnos/v1/metalakes/lake/objects/table/main.sales.orders/restrictions"
NOBODY: dict[str, list[str]] = {"users": [], "groups": [], "roles": []}
FORMER = {
    "name": "eu-only",
    "on": {"kind": "table", "name": "main.sales.orders"},
    "filter": {"type": "eq", "left": "region", "right": "EU"},
    "masks": {"card": "show-last-4", "ssn": "null"},
    "to": {**NOBODY, "users": ["ana"]},
    "except": NOBODY,
    "set_by": "admin",
    "set_at": "2026-01-01T00:00:00Z",
}
ABOVE = {**FORMER, "name": "all", "on": {"kind": "namespace", "name": "main.sales"}}
SET = ("restriction", "set", "eu-only", "main.sales.orders", "--kind", "table")


@pytest.fixture
def restricted(fake: FakeServer) -> FakeServer:
    """A table with a restriction of its own, and one of its namespace."""
    fake.on("GET", URL, {"restrictions": [FORMER, ABOVE]})
    fake.on("PUT", f"{URL}/eu-only", {"name": "eu-only"})
    return fake


def test_set_names_what_the_former_restriction_loses(restricted: FakeServer, limnos: Run) -> None:
    """A restriction that replaces one without its masks, filter and principals says so, and has it in its JSON."""
    done = limnos(*SET, "--filter", "region = 'US'", "--mask", "ssn=null", "--output", "table")
    result = limnos(*SET, "--mask", "ssn=null", "--mask", "card=show-last-4", "--to", "user:ana").result

    assert done.code == 0
    assert done.out == (
        "table main.sales.orders is restricted by eu-only; the former eu-only is replaced: its filter was"
        " region = 'EU'; its mask card=show-last-4 is gone; it applied to user:ana\n"
    )
    assert isinstance(result, dict)
    assert result["lost"] == ["its filter (region = 'EU') is gone"]
    assert result["replaced"]["masks"] == "card=show-last-4, ssn=null"


def test_exception_alone_is_answered_by_the_command_that_keeps_all_terms(restricted: FakeServer, limnos: Run) -> None:
    """Without a filter and masks, an existing restriction is not replaced: the answer is the command with the terms
    that it has, its principals, and those that were typed. Without such a restriction a filter or a mask is named.
    """
    excepting = {**FORMER, "except": {**NOBODY, "groups": ["hr"]}}
    restricted.routes["GET", URL] = []
    restricted.on("GET", URL, {"restrictions": [excepting, ABOVE]})

    added = limnos(*SET, "--except", "user:ben")
    moved = limnos(*SET, "--to", "role:r")
    new = limnos("restriction", "set", "other", "main.sales.orders", "--kind", "table", "--except", "user:ben")

    terms = "--filter \"region = 'EU'\" --mask card=show-last-4 --mask ssn=null"
    command = f"limnos set restriction eu-only main.sales.orders --kind table {terms}"
    assert (added.code, added.error["hint"]) == (2, f"{command} --to user:ana --except group:hr --except user:ben")
    assert moved.error["hint"] == f"{command} --to role:r --except group:hr"
    assert "'limnos create restriction other main.sales.orders --except user:ben --filter CONDITION'" in str(
        new.error["hint"]
    )
    assert not [call for call in restricted.calls if call.startswith("PUT")]


def test_same_and_new_restrictions_lose_nothing(restricted: FakeServer, limnos: Run) -> None:
    """A restriction with all terms of the former one, and one of a new name, lose nothing."""
    restricted.on("PUT", f"{URL}/all", {"name": "all"})
    masks = ["--mask", "ssn=null", "--mask", "card=show-last-4", "--mask", "day=null"]

    same = limnos(*SET, "--filter", "region = 'EU'", *masks, "--to", "user:ana", "--output", "table")
    new = limnos("restriction", "set", "all", "main.sales.orders", "--kind", "table", *masks)

    assert same.out == "table main.sales.orders is restricted by eu-only\n"
    assert new.result == {"restriction": "all", "on": "main.sales.orders", "kind": "table"}


def test_missing_restriction_is_not_found_with_the_near_name(restricted: FakeServer, limnos: Run) -> None:
    """The removal of a restriction that the object does not have exits with 3, and names the near or the known one."""
    restricted.on("DELETE", f"{URL}/eu-onyl", {"removed": False}).on("DELETE", f"{URL}/zz", {"removed": False})

    near = limnos("restriction", "remove", "eu-onyl", "main.sales.orders", "--kind", "table")
    far = limnos("restriction", "remove", "zz", "main.sales.orders", "--kind", "table")

    assert (near.code, far.code) == (3, 3)
    assert near.error["message"] == ("table main.sales.orders has no restriction 'eu-onyl'; did you mean eu-only?")
    assert far.error["message"] == "table main.sales.orders has no restriction 'zz'; it has eu-only"


def test_empty_list_of_a_namespace_names_restrictions_of_its_tables(fake: FakeServer, limnos: Run) -> None:
    """A namespace without restrictions may have restricted tables, which its list does not have."""
    fake.on("GET", "/api/limnos/v1/metalakes/lake/objects/schema/main.sales/restrictions", {"restrictions": []})

    namespace = limnos("list", "restrictions", "main.sales", "--kind", "namespace", "--output", "table")

    assert namespace.out + namespace.err == "no restrictions; its tables may have restrictions of their own\n"


def test_removal_takes_the_answer_of_a_script(restricted: FakeServer, limnos: Run) -> None:
    """`--yes` answers the question whether readers shall see what the restriction hides."""
    restricted.on("DELETE", f"{URL}/eu-only", {"removed": True})

    done = limnos("restriction", "remove", "eu-only", "main.sales.orders", "--kind", "table", "--yes")

    assert (done.code, done.err) == (0, "")


def test_mask_without_an_action_is_answered_by_its_own_column() -> None:
    """A mask that has only a column is refused with an example for that column."""
    with pytest.raises(UsageError) as refused:
        _masks(["phone"])

    assert refused.value.hint == "write for example --mask phone=show-last-4"
