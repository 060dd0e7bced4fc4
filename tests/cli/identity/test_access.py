"""`access explain`: the views that something is read through."""

from __future__ import annotations

import pytest

from limnos.access.actions import Action
from tests.cli.conftest import Run
from tests.client.fake import FakeServer

EXPLAIN = "/api/limnos/v1/metalakes/lake/access/explain"
ALLOWED = {"decision": {"allowed": True, "action": "table_load"}, "suggestions": []}
REFUSED = {"decision": {"allowed": False, "action": "table_load"}, "suggestions": []}


@pytest.mark.parametrize("document,code", [(ALLOWED, 0), (REFUSED, 7)])
def test_a_refusal_has_an_exit_code_of_its_own(
    fake: FakeServer, limnos: Run, document: dict[str, object], code: int
) -> None:
    """A script tells yes from no, and no from a question that could not be asked; the explanation is printed
    either way.
    """
    fake.on("POST", EXPLAIN, document)

    done = limnos("access", "explain", "table_load", "main.raw.t")

    assert done.code == code
    assert isinstance(done.result, dict)
    assert done.result["decision"]["allowed"] is (code == 0)


def test_actions_are_listed_without_a_server(limnos: Run) -> None:
    """Every action with the kinds that it is done to; without an action or the flag, the hint names the flag."""
    done = limnos("access", "explain", "--actions")
    nothing = limnos("access", "explain")

    assert isinstance(done.result, list)
    assert {row["action"]: row["kinds"] for row in done.result}["table_load"] == "table"
    assert len(done.result) == len(Action)
    assert nothing.code == 2
    assert "limnos access explain --actions" in str(nothing.error["hint"])


def test_a_chain_of_views_is_of_one_catalog(fake: FakeServer, limnos: Run) -> None:
    """`--through` takes whole paths, as every flag does; one that lies elsewhere is told back with the catalog,
    before anything is asked.
    """
    fake.on("POST", EXPLAIN, ALLOWED)
    words = ("access", "explain", "table_load", "main.raw.t", "--through", "main.raw.v", "--through")

    assert limnos(*words, "main.raw.w").code == 0
    assert fake.asked[-1].body["through"] == [["raw", "v"], ["raw", "w"]]  # type: ignore[index]
    for other in ("raw.w", "lab.raw.w", "main.w"):
        done = limnos(*words, other)
        assert done.code == 2, other
        assert f"give its whole path, as main.{other}" in str(done.error["message"])
    assert len(fake.asked) == 1


EXPLANATION = {
    "decision": {
        "allowed": False,
        "action": "table_load",
        "target": {"id": 5, "kind": "table", "name": "main.raw.t"},
        "user": "ben",
        "factors": [
            {
                "kind": "missing",
                "privilege": "SELECT_TABLE",
                "object": {"id": 5, "kind": "table", "name": "main.raw.t"},
            },
            {"kind": "allow", "privilege": "USE_CATALOG", "object": {"name": "main"}, "role": "r", "group": "staff"},
        ],
        "message": "needs SELECT_TABLE",
    },
    "suggestions": ["grant select_table on main.raw.t to a role of ben"],
}


def test_explain_shows_the_reasons(fake: FakeServer, limnos: Run) -> None:
    """`access explain` shows verdict, factors and what would change it."""
    fake.on("POST", EXPLAIN, EXPLANATION)

    text = limnos("access", "explain", "table_load", "main.raw.t", "--for", "ben", "--output", "table").out
    document = limnos("access", "explain", "table_load", "main.raw.t", "--for", "ben").result

    assert fake.asked[0].body == {"user": "ben", "action": "table_load", "path": ["main", "raw", "t"]}
    assert text.startswith("REFUSED: needs SELECT_TABLE\n")
    assert "what would change it:\n  grant select_table" in text
    assert isinstance(document, dict)
    assert document["decision"]["target"] == "main.raw.t"
    assert document["decision"]["factors"][1] == {
        "kind": "allow",
        "privilege": "USE_CATALOG",
        "object": "main",
        "role": "r",
        "group": "staff",
    }
