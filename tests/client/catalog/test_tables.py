# SPDX-License-Identifier: Apache-2.0
"""Loads of many tables: requests by catalog, answers that end early, and answers of another form."""

from __future__ import annotations

import json

import pytest

from limnos.client import Client
from limnos.client.catalog import tables
from limnos.client.errors import UnavailableError, UnexpectedAnswerError
from limnos.client.values import IcebergTableInfo, IcebergViewInfo
from tests.client.fake import FakeServer

LAKE = "/api/limnos/v1/metalakes/lake/catalogs"
ERROR = {"index": 1, "status": 404, "code": "not-found", "message": "There is no table", "request_id": "r-1"}


def lines(*fields: dict[str, object], count: int | None = None) -> str:
    """Return an answer with lines, and the line with their number."""
    last = {"count": len(fields) if count is None else count}
    return "".join([f"{json.dumps(each)}\n" for each in (*fields, last)])


def loaded(index: int, name: str) -> dict[str, object]:
    """Return the line of a loaded object."""
    return {"index": index, "metadata_location": f"file:///{name}", "metadata": {"location": name}}


def test_tables_are_loaded_by_catalog_and_returned_in_order(fake: FakeServer, client: Client) -> None:
    """Each catalog gets one request; a table with an error, and one without a line, are None at their positions."""
    fake.on("POST", f"{LAKE}/main/load", lines(loaded(0, "t"), ERROR))
    fake.on("POST", f"{LAKE}/other/load", lines(loaded(0, "x")))

    result = client.tables.load_each(["main.a.t", "other.`b c`.x", ("main", "a", "gone"), "main.a.late"])

    assert [each and each.path for each in result] == [("main", "a", "t"), ("other", "b c", "x"), None, None]
    assert result[0] == IcebergTableInfo(("main", "a", "t"), "file:///t", {"location": "t"})
    assert [each.body for each in fake.asked] == [
        {"paths": [["a", "t"], ["a", "gone"], ["a", "late"]], "kind": "table", "snapshots": "refs"},
        {"paths": [["b c", "x"]], "kind": "table", "snapshots": "refs"},
    ]


def test_many_tables_are_loaded_by_several_requests(
    fake: FakeServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request has at most as many tables as the server accepts."""
    monkeypatch.setattr(tables, "LOADED_AT_ONCE", 2)
    fake.on("POST", f"{LAKE}/main/load", lines(loaded(0, "t"), loaded(1, "u"))).on(
        "POST", f"{LAKE}/main/load", lines(loaded(0, "v"))
    )

    each = client.tables.load_each([f"main.a.{name}" for name in "tuv"])

    assert [one and one.metadata_location for one in each] == ["file:///t", "file:///u", "file:///v"]
    assert client.tables.load_each([]) == ()


def test_long_paths_are_loaded_by_several_requests(
    fake: FakeServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request has no longer body than the server accepts; a path that is longer has a request of its own."""
    monkeypatch.setattr(tables, "PATHS_BYTES", 40)
    for names in (("t", "u"), ("long",)):
        fake.on("POST", f"{LAKE}/main/load", lines(*[loaded(index, name) for index, name in enumerate(names)]))

    client.tables.load_each(["main.a.t", "main.a.u", f"main.a.{'x' * 60}"])

    assert [len(each.body["paths"]) for each in fake.asked] == [2, 1]  # type: ignore[index]


def test_views_are_loaded_by_one_request(fake: FakeServer, client: Client) -> None:
    """Views are loaded as tables are, with their kind."""
    fake.on("POST", f"{LAKE}/main/load", lines(loaded(0, "v")))

    (view,) = client.views.load_each(["main.a.v"])

    assert view == IcebergViewInfo(("main", "a", "v"), "file:///v", {"location": "v"})
    assert fake.asked[-1].body == {"paths": [["a", "v"]], "kind": "view", "snapshots": "all"}


@pytest.mark.parametrize(
    "answer,error",
    [
        (lines(loaded(0, "t"), count=2), UnavailableError),
        (lines(loaded(0, "t"))[:-15], UnavailableError),
        (lines(loaded(0, "t"))[:-1], UnavailableError),
        (lines(), UnavailableError),
        (lines(loaded(1, "t")), UnavailableError),
        (lines(loaded(0, "t"), loaded(1, "u")), UnavailableError),
        ("<p>{}\n", UnexpectedAnswerError),
    ],
)
def test_answer_of_another_form_is_an_error(
    fake: FakeServer, client: Client, answer: str, error: type[Exception]
) -> None:
    """An answer without its last line, or with lines of other objects, is refused as incomplete; one that is not JSON
    as unexpected.
    """
    fake.on("POST", f"{LAKE}/main/load", answer)

    with pytest.raises(error):
        client.tables.load_each(["main.a.t"])
