# SPDX-License-Identifier: Apache-2.0
"""Tags over Gravitino REST: their values, and tags, policies and statistics on columns."""

from __future__ import annotations

import pytest

from limnos.services.governance import attachments
from tests.http.driver import API, OWN, DriverAnswer, DriverNode, grant
from tests.http.iceberg.wire import SCHEMA, make_table, space_path, table_path
from tests.http.interference import InterferencePoint, interfere

LAKE = f"{API}/lake"
TABLE = "main.a.t"
COLUMN = f"{TABLE}.city"
V2 = "application/vnd.gravitino.v2+json"
CUSTOM = {"supportedObjectTypes": ["COLUMN", "TABLE"], "customRules": {"keep": 7}}


@pytest.fixture
def tag_node(node: DriverNode) -> DriverNode:
    """A node with a table of columns `id` and `city`, tags and a policy."""
    make_table(node, "a", "t")
    for name, more in (("red", {}), ("blue", {}), ("domain", {"allowedValues": ["sales", "risk"]})):
        node.done("POST", f"{LAKE}/tags", {"name": name, **more})
    node.done("POST", f"{LAKE}/policies", {"name": "keep", "policyType": "custom", "content": CUSTOM})
    return node


def on(kind: str, name: str, what: str = "tags") -> str:
    """Return the URL of the tags on an object."""
    return f"{LAKE}/objects/{kind}/{name}/{what}"


def associate(node: DriverNode, target: str, *adds: object, removes: tuple[object, ...] = ()) -> DriverAnswer:
    """Attach and detach tags with version 2 of the protocol."""
    body = {"tagsToAdd": list(adds), "tagsToRemove": list(removes)}
    return node.ask("POST", target, body, Accept=V2, Content_Type=V2)


def pair(name: str, value: str | None = None) -> dict[str, object]:
    """Return a tag with a value."""
    return {"name": name, "value": value}


def tag_rows(node: DriverNode, target: str) -> list[tuple[object, ...]]:
    """Return name, inheritance and values of the tags in an answer."""
    tags = node.done("GET", f"{target}?details=true")["tags"]
    return [(each["name"], each["inherited"], each["assignmentValues"]) for each in tags]


def commit(node: DriverNode, *updates: dict[str, object]) -> None:
    """Commit to the table over Iceberg REST."""
    node.done("POST", table_path("a", "t"), {"requirements": [], "updates": list(updates)})


def alter(node: DriverNode, *updates: dict[str, object]) -> None:
    """Alter the table over Gravitino REST."""
    node.done("PUT", f"{LAKE}/catalogs/main/schemas/a/tables/t", {"updates": list(updates)})


def test_tags_are_returned_with_their_allowed_values(tag_node: DriverNode) -> None:
    """Allowed values are returned as sent; a tag with any value omits them, one without values has an empty list."""
    tag_node.done("POST", f"{LAKE}/tags", {"name": "bare", "allowedValues": []})
    tags = {each["name"]: each for each in tag_node.done("GET", f"{LAKE}/tags?details=true")["tags"]}

    assert {name: each.get("allowedValues") for name, each in tags.items()} == {
        "bare": [],
        "blue": None,
        "domain": ["sales", "risk"],
        "red": None,
    }
    assert not any({"assignmentValues", "inherited"} & each.keys() for each in tags.values())
    renamed = tag_node.done("PUT", f"{LAKE}/tags/domain", {"updates": [{"@type": "rename", "newName": "d"}]})["tag"]
    assert renamed["allowedValues"] == ["sales", "risk"]


def test_own_tag_overrides_the_inherited_tag(tag_node: DriverNode) -> None:
    """An object's own tag overrides the inherited one and its values. Lists of names contain the tag once."""
    first = associate(tag_node, on("catalog", "main"), pair("domain", "sales"), pair("red"))
    associate(tag_node, on("table", TABLE), pair("domain", "risk"), pair("domain", "sales"))

    assert first["names"] == ["domain", "red"]
    assert tag_rows(tag_node, on("schema", "main.a")) == [("red", True, []), ("domain", True, ["sales"])]
    assert tag_rows(tag_node, on("table", TABLE)) == [("domain", False, ["risk", "sales"]), ("red", True, [])]
    assert tag_node.done("GET", on("table", TABLE))["names"] == ["domain", "red"]
    one = tag_node.done("GET", f"{on('table', TABLE)}/domain")["tag"]
    assert (one["assignmentValues"], one["allowedValues"]) == (["risk", "sales"], ["sales", "risk"])


def test_objects_of_a_tag_can_be_filtered_by_value(tag_node: DriverNode) -> None:
    """With a value, a tag lists the objects with exactly that value; without one, all of its objects."""
    associate(tag_node, on("catalog", "main"), pair("red"))
    associate(tag_node, on("table", TABLE), pair("red", "x"), pair("red", "y"))
    associate(tag_node, on("column", COLUMN), pair("red", "y"))
    queries = ("", "?value=x", "?value=y", "?value=Y")

    object_lists = [tag_node.done("GET", f"{LAKE}/tags/red/objects{query}")["metadataObjects"] for query in queries]

    assert [[each["fullName"] for each in objects] for objects in object_lists] == [
        ["main", TABLE, COLUMN],
        [TABLE],
        [TABLE, COLUMN],
        [],
    ]
    assert [each["type"] for each in object_lists[0]] == ["catalog", "table", "column"]
    assert tag_node.get(f"{LAKE}/tags/red/objects?value=%20")["code"] == 1001


def test_version_1_attaches_and_detaches_tags_without_values(tag_node: DriverNode) -> None:
    """Version 1 attaches tags without a value, refuses a tag that is already attached, and detaches a tag with all its
    values. Pairs of version 2 are refused with 400.
    """
    associate(tag_node, on("table", TABLE), pair("red", "x"))
    again = tag_node.post(on("table", TABLE), {"tagsToAdd": ["red"]})
    mixed = tag_node.post(on("table", TABLE), {"tagsToAdd": ["blue"], "tagsToRemove": [pair("red")]})
    remaining_tags = tag_node.done("POST", on("table", TABLE), {"tagsToAdd": ["blue"], "tagsToRemove": ["red"]})[
        "names"
    ]
    tag_node.done("POST", on("table", TABLE), {"tagsToAdd": ["red"]})

    assert (again.status, again["type"]) == (409, "TagAlreadyAssociatedException")
    assert (mixed.status, mixed["code"]) == (400, 1001)
    assert (remaining_tags, tag_rows(tag_node, on("table", TABLE))) == (
        ["blue"],
        [("red", False, []), ("blue", False, [])],
    )


@pytest.mark.parametrize(
    "pairs, status, kind, words",
    [
        ([pair("domain", "other")], 400, "IllegalArgumentException", "accepts one of sales, risk"),
        ([pair("red", "x"), pair("red")], 400, "IllegalArgumentException", "with a value and without one"),
        ([pair("red", "")], 400, "IllegalArgumentException", "1 to 256"),
        ([pair("")], 400, "IllegalArgumentException", "name is empty"),
        ([pair("absent", "x")], 404, "NoSuchTagException", "does not exist"),
        ([{"name": "red", "values": ["x"]}], 400, "IllegalArgumentException", "Malformed json"),
    ],
)
def test_invalid_tag_value_pair_is_refused(
    tag_node: DriverNode, pairs: list[dict[str, object]], status: int, kind: str, words: str
) -> None:
    """Each invalid pair of tag and value is refused with its own message, and no pair of the request is added."""
    answer = associate(tag_node, on("table", TABLE), pair("blue", "good"), *pairs)

    assert (answer.status, answer["type"]) == (status, kind)
    assert words in str(answer["message"])
    assert tag_rows(tag_node, on("table", TABLE)) == []


def test_columns_support_tags_policies_and_statistics(tag_node: DriverNode) -> None:
    """Attachments of a column are listed with the column, together with inherited ones. The table does not have
    them.
    """
    associate(tag_node, on("table", TABLE), pair("blue", "t"))
    associate(tag_node, on("column", COLUMN), pair("red", "c"))
    tag_node.done("POST", on("column", COLUMN, "policies"), {"policiesToAdd": ["keep"]})
    tag_node.done("PUT", on("column", COLUMN, "statistics"), {"updates": {"custom-nulls": 3}})
    policies = [
        tag_node.done("GET", on(*which, "policies"))["names"] for which in (("column", COLUMN), ("table", TABLE))
    ]
    statistics = [
        tag_node.done("GET", on(*which, "statistics"))["statistics"] for which in (("column", COLUMN), ("table", TABLE))
    ]

    assert tag_rows(tag_node, on("column", COLUMN)) == [("red", False, ["c"]), ("blue", True, ["t"])]
    assert tag_rows(tag_node, on("column", f"{TABLE}.id")) == [("blue", True, ["t"])]
    assert tag_rows(tag_node, on("table", TABLE)) == [("blue", False, ["t"])]
    assert policies == [["keep"], []]
    assert [[(each["name"], each["value"]) for each in entries] for entries in statistics] == [
        [("custom-nulls", 3)],
        [],
    ]
    assert tag_node.done("GET", f"{LAKE}/policies/keep/objects")["metadataObjects"] == [
        {"fullName": COLUMN, "type": "column"}
    ]
    dropped = [
        tag_node.done("POST", on("column", COLUMN, "statistics"), {"names": ["custom-nulls"]})["dropped"] for _ in "ab"
    ]
    assert dropped == [True, False]


def test_column_attachments_follow_the_column_id(tag_node: DriverNode) -> None:
    """Attachments follow the column's id through renames over both protocols; a new column of an old name has none, a
    rollback restores them.
    """
    associate(tag_node, on("column", COLUMN), pair("red", "c"))
    tag_node.done("PUT", on("column", COLUMN, "statistics"), {"updates": {"custom-n": 1}})
    alter(tag_node, {"@type": "renameColumn", "oldFieldName": ["city"], "newFieldName": "town"})
    renamed = tag_rows(tag_node, on("column", f"{TABLE}.town"))
    alter(tag_node, {"@type": "rename", "newName": "u"})
    moved = tag_node.done("GET", f"{LAKE}/tags/red/objects")["metadataObjects"]
    tag_node.done("PUT", f"{LAKE}/catalogs/main/schemas/a/tables/u", {"updates": [{"@type": "rename", "newName": "t"}]})
    alter(tag_node, {"@type": "deleteColumn", "fieldName": ["town"], "ifExists": False})
    missing_column = tag_node.get(on("column", f"{TABLE}.town"))
    listed = tag_node.done("GET", f"{LAKE}/tags/red/objects")["metadataObjects"]
    alter(tag_node, {"@type": "addColumn", "fieldName": ["town"], "type": "string", "nullable": True})
    successor = tag_rows(tag_node, on("column", f"{TABLE}.town"))
    commit(tag_node, {"action": "set-current-schema", "schema-id": 0})

    assert renamed == [("red", False, ["c"])]
    assert moved == [{"fullName": "main.a.u.town", "type": "column"}]
    assert (missing_column.status, missing_column["type"], listed) == (404, "NoSuchMetadataObjectException", [])
    assert successor == []
    assert tag_rows(tag_node, on("column", COLUMN)) == [("red", False, ["c"])]
    assert len(tag_node.done("GET", on("column", COLUMN, "statistics"))["statistics"]) == 1


def test_restored_table_has_its_column_attachments(tag_node: DriverNode) -> None:
    """Attachments of columns are restored with the table. A new table under its name has none."""
    associate(tag_node, on("column", COLUMN), pair("red"))
    tag_node.done("DELETE", f"{LAKE}/catalogs/main/schemas/a/tables/t")
    trash = f"{OWN}/metalakes/lake/catalogs/main/trash"
    (trash_entry,) = tag_node.get(trash).json()["trash"]
    make_table(tag_node, "a", "t")
    fresh = tag_rows(tag_node, on("column", COLUMN))
    tag_node.done("POST", f"{trash}/{trash_entry['id']}/undrop", {"to": ["a", "old"]})

    assert (fresh, tag_rows(tag_node, on("column", "main.a.old.city"))) == ([], [("red", False, [])])


@pytest.mark.parametrize(
    "name, status, kind",
    [
        (f"{TABLE}.absent", 404, "NoSuchMetadataObjectException"),
        ("main.a.absent.city", 404, "NoSuchMetadataObjectException"),
        (TABLE, 400, "IllegalNameIdentifierException"),
        (f"{TABLE}.`city", 400, "IllegalNameIdentifierException"),
    ],
)
def test_missing_column_is_refused(tag_node: DriverNode, name: str, status: int, kind: str) -> None:
    """Tags, policies and statistics of a missing column are refused with the same error."""
    for what in ("tags", "policies", "statistics"):
        answer = tag_node.get(on("column", name, what))

        assert (answer.status, answer["type"]) == (status, kind), what


def test_refusal_does_not_reveal_columns_of_hidden_tables(tag_node: DriverNode) -> None:
    """Users who may not load the table get the same refusal for existing and missing columns. Writing statistics needs
    the privilege to alter the table.
    """
    for who, rights in (("ana", "use_catalog use_schema"), ("bob", "use_catalog use_schema select_table")):
        tag_node.done("POST", f"{LAKE}/users", {"name": who})
        grant(tag_node, who, rights, kind="CATALOG", on="main")
    ways = ("tags", "policies", "statistics", "tags/red", "statistics/partitions?from=a")
    answers = [
        [tag_node.get(on("column", name, way), user="ana") for way in ways] for name in (COLUMN, f"{TABLE}.none")
    ]
    write = tag_node.ask("PUT", on("column", COLUMN, "statistics"), {"updates": {"custom-n": 1}}, user="bob")

    assert [[each.status for each in row] for row in answers] == [[403] * 5] * 2
    assert [each["message"] for each in answers[1]] == [
        str(each["message"]).replace(COLUMN, f"{TABLE}.none") for each in answers[0]
    ]
    assert tag_node.get(on("column", COLUMN), user="bob").status == 200
    assert write.status == 403


def test_ambiguous_dotted_column_name_is_refused_with_a_hint(tag_node: DriverNode) -> None:
    """If a full name with dots fits two columns, the message asks for back-quotes. A user without rights on them gets
    403 without this hint.
    """
    schema = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "b.c", "type": "long", "required": False}]}
    other = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "c", "type": "long", "required": False}]}
    make_table(tag_node, "a", "x", schema=schema)
    make_table(tag_node, "a", "x.b", schema=other)
    fits = tag_node.get(on("column", "main.a.x.b.c"))
    associate(tag_node, on("column", "main.a.x.%60b.c%60"), pair("red"))
    tag_node.done("POST", f"{LAKE}/users", {"name": "ana"})
    refused = tag_node.get(on("column", "main.a.x.b.c"), user="ana")

    assert (fits.status, "fits 2 objects" in str(fits["message"])) == (400, True)
    assert tag_node.done("GET", f"{LAKE}/tags/red/objects")["metadataObjects"][0]["fullName"] == "main.a.x.`b.c`"
    assert (refused.status, "fits" in str(refused["message"])) == (403, False)


def test_view_columns_have_no_attachments(tag_node: DriverNode) -> None:
    """Columns of views have no attachments, and columns have no partitions or owner. A policy must support columns in
    order to be attached to one.
    """
    tag_node.done(
        "POST",
        f"{LAKE}/policies",
        {"name": "wide", "policyType": "custom", "content": {"supportedObjectTypes": ["TABLE"]}},
    )
    answers = (
        tag_node.get(on("column", COLUMN, "statistics/partitions?from=a")),
        tag_node.ask(
            "PUT",
            on("column", COLUMN, "statistics/partitions"),
            {"updates": [{"partitionName": "p", "statistics": {"custom-n": 1}}]},
        ),
        tag_node.ask(
            "POST",
            on("column", COLUMN, "statistics/partitions"),
            {"drops": [{"partitionName": "p", "statisticNames": ["custom-n"]}]},
        ),
        tag_node.post(on("column", COLUMN, "policies"), {"policiesToAdd": ["wide"]}),
        tag_node.get(f"{LAKE}/owners/column/{COLUMN}"),
        tag_node.get(on("column", COLUMN, "roles")),
    )

    assert [(each.status, each["code"]) for each in answers] == [
        (405, 1006),
        (405, 1006),
        (405, 1006),
        (400, 1001),
        (400, 1001),
        (400, 1001),
    ]


def test_objects_of_a_tag_are_read_with_the_rights_at_the_end_of_the_request(
    tag_node: DriverNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user who loses the right to load the tag after the decision and before its objects are read does not see an
    object that is tagged after that.
    """
    grant(tag_node, "ana", "use_catalog use_schema select_table", kind="catalog", on="main")
    role = grant(tag_node, "ana", "apply_tag", kind="tag", on="red")
    assert tag_node.get(f"{LAKE}/tags/red/objects", user="ana").status == 200

    async def act() -> None:
        for method, path, body in (
            ("PUT", f"{LAKE}/permissions/users/ana/revoke", {"roleNames": [role]}),
            ("POST", on("table", TABLE), {"tagsToAdd": ["red"], "tagsToRemove": []}),
        ):
            answer = await tag_node.answer(method, path, body)
            assert answer.status == 200, answer

    with interfere(tag_node, monkeypatch, step=InterferencePoint.READ, act=act) as interference:
        answer = tag_node.get(f"{LAKE}/tags/red/objects", user="ana")

    assert interference.is_done
    assert (answer.status, TABLE.encode() in answer.body) == (403, False), answer


def test_table_at_the_path_of_a_dropped_one_is_no_object_of_its_tag(
    tag_node: DriverNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the tagged table is dropped while the objects are read, and another table gets its path, it is not listed."""
    associate(tag_node, on("table", TABLE), pair("red"))
    real = attachments.read_many_scopes

    async def read_after(*args: object) -> object:
        for method, path, body in (
            ("DELETE", table_path("a", "t"), None),
            ("POST", f"{space_path('a')}/tables", {"name": "t", "schema": SCHEMA}),
        ):
            answer = await tag_node.answer(method, path, body)
            assert answer.status in (200, 204), answer
        return await real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(attachments, "read_many_scopes", read_after)

    assert tag_node.get(f"{LAKE}/tags/red/objects").json()["metadataObjects"] == []


def test_objects_are_those_of_the_tag_that_has_the_name_at_the_end(
    tag_node: DriverNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the tag is dropped while its objects are read, and another gets its name, the other's objects are listed."""
    associate(tag_node, on("table", TABLE), pair("red"))

    async def act() -> None:
        for method, path, body in (
            ("DELETE", f"{LAKE}/tags/red", None),
            ("POST", f"{LAKE}/tags", {"name": "red"}),
            ("POST", on("catalog", "main"), {"tagsToAdd": ["red"], "tagsToRemove": []}),
        ):
            answer = await tag_node.answer(method, path, body)
            assert answer.status == 200, answer

    with interfere(tag_node, monkeypatch, step=InterferencePoint.READ, act=act) as interference:
        objects = tag_node.get(f"{LAKE}/tags/red/objects").json()["metadataObjects"]

    assert interference.is_done
    assert [each["fullName"] for each in objects] == ["main"]
