# SPDX-License-Identifier: Apache-2.0
"""`policy` commands, by their main spellings: create, list, show, set, delete, enable, disable, remove."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.client.fake import FakeServer

M = "/api/metalakes/lake"
KEEP = {"name": "keep", "policyType": "custom", "enabled": True, "content": {"customRules": {"a": 1}}, "comment": "c"}


def test_policy_is_created_from_text_or_a_file(fake: FakeServer, limnos: Run, tmp_path: Path) -> None:
    """The content is sent as typed, or as a file has it."""
    fake.on("POST", f"{M}/policies", {"policy": KEEP})
    file = tmp_path / "keep.json"
    file.write_text('{"customRules": {"a": 1}}')

    for content in ('{"customRules": {"a": 1}}', f"@{file}"):
        done = limnos("create", "policy", "keep", "--type", "custom", "--content", content, "--comment", "c")
        assert done.code == 0
        assert fake.asked[-1].body == {
            "name": "keep",
            "policyType": "custom",
            "content": {"customRules": {"a": 1}},
            "enabled": True,
            "comment": "c",
        }


@pytest.mark.parametrize("content", ["{", "[1]", "@/nowhere/at/all.json"])
def test_wrong_content_is_a_usage_error(fake: FakeServer, limnos: Run, content: str) -> None:
    """No request is sent for a content that is no JSON object."""
    done = limnos("create", "policy", "keep", "--type", "custom", "--content", content)

    assert done.code == 2
    assert "--content is no JSON" in done.err
    assert fake.asked == []


def test_policies_are_listed_shown_attached_and_switched(fake: FakeServer, limnos: Run) -> None:
    """Lists have the state, a policy its content and objects; each change is one request."""
    on = f"{M}/objects/catalog/main/policies"
    fake.on("GET", f"{M}/policies?details=true", {"policies": [KEEP]})
    fake.on("GET", f"{M}/policies/keep", {"policy": KEEP})
    fake.on("GET", f"{M}/policies/keep/objects", {"metadataObjects": [{"fullName": "main", "type": "catalog"}]})
    fake.on("GET", f"{on}?details=true", {"policies": [KEEP | {"inherited": False}]})
    fake.on("POST", on, {"names": ["keep"]})
    fake.on("PATCH", f"{M}/policies/keep", {})
    fake.on("DELETE", f"{M}/policies/keep", {"dropped": True})

    assert "keep" in limnos("list", "policies", "--output", "table").out
    text = limnos("show", "policy", "keep", "--output", "table").out
    assert '"a": 1' in text
    assert "main" in text
    assert limnos("policy", "list", "main", "--kind", "catalog").code == 0
    assert limnos("policy", "add", "keep", "main", "--kind", "catalog").code == 0
    assert fake.asked[-1].body == {"policiesToAdd": ["keep"], "policiesToRemove": []}
    assert limnos("policy", "remove", "keep", "main", "--kind", "catalog").code == 0
    assert fake.asked[-1].body == {"policiesToAdd": [], "policiesToRemove": ["keep"]}
    for word, is_enabled in (("disable", False), ("enable", True)):
        assert limnos("policy", word, "keep").code == 0
        assert fake.asked[-1].body == {"enable": is_enabled}
    assert json.loads(limnos("delete", "policy", "keep", "--yes", "--output", "json").out) == {"deleted": "keep"}


def test_policy_is_attached_to_a_column(fake: FakeServer, limnos: Run) -> None:
    """With `--column` a policy is attached to, listed on and detached from a column of a table."""
    on = f"{M}/objects/column/main.raw.t.email/policies"
    fake.on("GET", f"{on}?details=true", {"policies": [KEEP | {"inherited": False}]})
    fake.on("POST", on, {"names": ["keep"]})
    words = ["main.raw.t", "--column", "email", "--kind", "table", "--output", "table"]

    added = limnos("set", "policy", "keep", *words)
    listed = limnos("list", "policies", *words)
    removed = limnos("policy", "remove", "keep", *words)

    assert added.out == "policy keep is on column email of main.raw.t\n"
    assert "keep" in listed.out
    assert removed.out == "policy keep is no longer on column email of main.raw.t\n"


def test_column_without_a_table_is_a_usage_error(limnos: Run) -> None:
    """`list policies --column` needs the table of the column."""
    done = limnos("list", "policies", "--column", "email")

    assert (done.code, done.error["hint"]) == (2, "'limnos list policies PATH --column email'")


@pytest.mark.parametrize(
    "typed, hint",
    [
        ("set policy keep main.raw.t --columns email", "'limnos set policy keep main.raw.t --column email'"),
        ("policy disable keep --columns name", "'limnos policy disable --help' explains its flags"),
        ("show main.raw.t --wide", "'limnos show main.raw.t'"),
        ("grant select_table --on main --to r --wide", "'limnos grant select_table --on main --to r'"),
    ],
)
def test_flags_of_lists_are_refused_by_other_commands(fake: FakeServer, limnos: Run, typed: str, hint: str) -> None:
    """A command that prints no list refuses `--columns` and `--wide`, before it sends a request."""
    done = limnos(*typed.split())

    typed_hint = re.sub(" --uri .* --user ana", "", str(done.error["hint"]))
    assert (done.code, typed_hint, fake.calls) == (2, hint, [])


@pytest.mark.parametrize("flag", ["--column", "--colums", "--fields"])
def test_unknown_flag_is_not_answered_with_a_flag_of_lists(limnos: Run, flag: str) -> None:
    """The answer to an unknown flag of a command that prints no list proposes no flag of lists."""
    done = limnos("policy", "disable", "keep", flag, "email")

    assert done.code == 2
    assert "--columns" not in str(done.error["hint"])
