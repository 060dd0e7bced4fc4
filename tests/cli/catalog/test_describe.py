"""`describe`: the protection of an object, and objects that are outside the tree."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Run
from tests.client.fake import FakeServer


def test_describe_tells_of_protection(fake: FakeServer, limnos: Run) -> None:
    """What protects something from being dropped is shown, and nothing where nothing does."""
    fake.on("GET", "/iceberg/v1/lake.main/namespaces/raw", {"namespace": ["raw"], "properties": {}})
    where = "/api/limnos/v1/metalakes/lake/objects/schema/main.raw/protection"
    fake.on("GET", where, {"protected": True, "by": {"kind": "catalog", "name": "main"}, "below": True})
    fake.on("GET", where, {"protected": False})

    shown = [limnos("describe", "main.raw").result for _ in range(2)]

    assert [row.get("protected_by") for row in shown if isinstance(row, dict)] == ["catalog main", None]


@pytest.mark.parametrize("verb,told", [("describe", "describe"), ("drop", "delete")])
def test_a_tag_is_not_in_the_tree(fake: FakeServer, limnos: Run, verb: str, told: str) -> None:
    """A tag is neither shown nor dropped as if it were a catalog of its name: the command for tags is named, and
    nothing is sent.
    """
    done = limnos(verb, "main", "--kind", "tag")

    assert (done.code, done.error["hint"]) == (2, f"'limnos tag {told} main'")
    assert fake.calls == []


@pytest.mark.parametrize("kind", ["table", "view", "tag"])
def test_what_holds_nothing_is_not_listed(fake: FakeServer, limnos: Run, kind: str) -> None:
    """`--kind` says what the path is, and is no filter: what has nothing in it is refused before anything is asked."""
    done = limnos("ls", "main.raw", "--kind", kind)

    assert (done.code, fake.calls) == (2, [])
    assert f"a {kind} has no content to list" in str(done.error["message"])
