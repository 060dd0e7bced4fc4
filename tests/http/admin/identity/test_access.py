"""Explanations."""

from __future__ import annotations

import pytest

from tests.http.driver import API, OWN, DriverNode, grant

EXPLAIN = f"{OWN}/metalakes/lake/access/explain"
SCHEMAS = f"{API}/lake/catalogs/main/schemas"


def test_permission_is_explained_by_role_and_privilege(node: DriverNode) -> None:
    """An allowed decision names the privilege, the object and the role, at the revisions it holds; nothing is
    suggested.
    """
    role = grant(node, "ana", "use_catalog", kind="catalog", on="main")

    told = node.done("POST", EXPLAIN, {"action": "catalog_load", "path": ["main"]}, user="ana")

    (factor,) = told["decision"]["factors"]
    assert told["decision"]["allowed"] is True
    assert (factor["kind"], factor["privilege"], factor["role"]) == ("allow", "USE_CATALOG", role)
    assert factor["object"]["name"] == "main"
    assert told["decision"]["revision"]
    assert told["suggestions"] == []


def test_refusal_comes_with_suggestions(node: DriverNode) -> None:
    """A refused decision is an answer, not a failure, and says what would change it."""
    node.done("POST", f"{API}/lake/users", {"name": "ana"})

    told = node.done("POST", EXPLAIN, {"action": "catalog-load", "path": ["main"]}, user="ana")

    assert told["decision"]["allowed"] is False
    assert told["decision"]["message"].startswith("User 'ana' is not authorized")
    assert told["suggestions"] == ["Grant USE_CATALOG on catalog main to a role of ana."]


def test_others_are_explained_to_grant_managers(node: DriverNode) -> None:
    """Explaining somebody else takes MANAGE_GRANTS; the owner of the metalake has it."""
    grant(node, "ana", "use_catalog", kind="catalog", on="main")
    question = {"action": "catalog_load", "path": ["main"], "user": "admin"}

    refused = node.post(EXPLAIN, question, user="ana")
    told = node.done("POST", EXPLAIN, {**question, "user": "ana"})

    assert (refused.status, refused.json()["error"]["code"]) == (403, "forbidden")
    assert (told["decision"]["user"], told["decision"]["allowed"]) == ("ana", True)


@pytest.mark.parametrize(
    "real, absent, action",
    [
        (["main"], ["zone"], "catalog_load"),
        (["main", "a"], ["main", "z"], "namespace_load"),
        (["main", "a", "b"], ["zone", "a", "b"], "namespace_load"),
    ],
    ids=str,
)
def test_refusals_do_not_tell_what_exists(node: DriverNode, real: list[str], absent: list[str], action: str) -> None:
    """What one may not know is explained alike whether it exists or not."""
    node.done("POST", SCHEMAS, {"name": "a:b"})
    node.done("POST", f"{API}/lake/users", {"name": "ana"})

    first, second = (node.post(EXPLAIN, {"action": action, "path": path}, user="ana") for path in (real, absent))

    assert first.status == second.status == 200
    assert first.body.replace(".".join(real).encode(), b"X").replace(real[0].encode(), b"C") == second.body.replace(
        ".".join(absent).encode(), b"X"
    ).replace(absent[0].encode(), b"C")


def test_metalake_is_meant_by_an_empty_path(node: DriverNode) -> None:
    """Without a path the question is about the metalake."""
    told = node.done("POST", EXPLAIN, {"action": "catalog_create"})

    assert told["decision"]["allowed"] is True
    assert told["decision"]["target"]["kind"] == "metalake"


@pytest.mark.parametrize(
    "question",
    [
        {"action": "fly", "path": ["main"]},
        {"action": "table_load", "path": ["main"]},
        {"action": "catalog_load", "path": ["main"], "kind": "planet"},
        {"action": "catalog_load", "path": [""]},
        {"path": ["main"]},
        {"action": "catalog_load", "path": "main"},
    ],
    ids=str,
)
def test_bad_questions_are_400(node: DriverNode, question: object) -> None:
    """An unknown action, one that is not done to such an object, or a malformed path is 400."""
    assert node.post(EXPLAIN, question).status == 400
