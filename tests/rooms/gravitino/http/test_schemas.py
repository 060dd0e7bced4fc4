# SPDX-License-Identifier: Apache-2.0
"""Schemas over Gravitino REST: nesting, one request for a chain of schemas, and upstream's vectors (test names have
their numbers).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from limnos.app.node_beats import NodeBeats
from limnos.config.settings import NamesSection
from limnos.services.catalog import catalog_checks
from tests.http.driver import API, DriverAnswer, DriverNode, grant, node_at
from tests.rooms.lance.http.wire import declare, make_space

ALL = f"{API}/lake/catalogs/main/schemas"


def names(answer: DriverAnswer) -> list[str]:
    """Return the names of a list."""
    return [each["name"] for each in answer.json()["identifiers"]]


def error_fields(answer: DriverAnswer) -> tuple[int, object, object]:
    """Return status, code and type of a failure."""
    return answer.status, answer["code"], answer["type"]


def make(node: DriverNode, *schemas: str, user: str = "admin") -> None:
    """Create schemas."""
    for name in schemas:
        node.done("POST", ALL, {"name": name}, user=user)


def owner(node: DriverNode, schema: str) -> object:
    """Return the name of a schema's owner."""
    return node.done("GET", f"{API}/lake/owners/schema/main.{schema}")["owner"]["name"]


def test_vector_1_create_makes_all_parents(node: DriverNode) -> None:
    """After a create of `A:B:C`, the root lists only `A`, and each level lists the next one by its full name."""
    schema = node.done("POST", ALL, {"name": "A:B:C", "comment": "x", "properties": {"k": "v"}})["schema"]

    levels = [names(node.get(ALL + query)) for query in ("", "?parentSchema=A", "?parentSchema=A%3AB")]

    assert (schema["name"], schema["comment"], schema["properties"]) == ("A:B:C", "x", {"k": "v"})
    assert levels == [["A"], ["A:B"], ["A:B:C"]]
    assert node.get(ALL).json()["identifiers"] == [{"namespace": ["lake", "main"], "name": "A"}]


def test_implicit_parents_have_no_comment_or_properties(node: DriverNode) -> None:
    """Implicitly created parents have neither comment nor properties."""
    node.done("POST", ALL, {"name": "A:B", "comment": "x", "properties": {"k": "v"}})

    parent = node.done("GET", f"{ALL}/A")["schema"]

    assert "comment" not in parent
    assert parent["properties"] == {}


def test_body_name_is_percent_decoded_once(node: DriverNode) -> None:
    """The name in the body is percent-decoded once (`a%3Ab%3Ac` is `a:b:c`), because the Python client encodes it."""
    created = node.done("POST", ALL, {"name": "a%3Ab%3Ac"})

    assert created["schema"]["name"] == "a:b:c"
    assert names(node.get(f"{ALL}?parentSchema=a%3Ab")) == ["a:b:c"]


def test_vectors_2_3_4_create_needs_a_grant_on_an_ancestor(node: DriverNode) -> None:
    """Without a grant a create is refused; CREATE_SCHEMA on `A:B` or `A` is enough, and the creator owns the schema."""
    make(node, "A:B:C")
    node.done("POST", f"{API}/lake/users", {"name": "ana"})

    refused = node.post(ALL, {"name": "A:B:D"}, user="ana")
    grant(node, "ana", "use_catalog", kind="catalog", on="main")
    grant(node, "ana", "create_schema use_schema", kind="schema", on="main.A:B")
    make(node, "A:B:D", user="ana")
    beside = node.post(ALL, {"name": "A:E:F"}, user="ana")
    grant(node, "ana", "create_schema", kind="schema", on="main.A")
    make(node, "A:E:F", user="ana")

    assert error_fields(refused) == error_fields(beside) == (403, 1008, "ForbiddenException")
    assert [owner(node, name) for name in ("A", "A:B", "A:B:D", "A:E", "A:E:F")] == [
        "admin",
        "admin",
        "ana",
        "ana",
        "ana",
    ]


def test_vector_5_use_schema_on_a_leaf_loads_only_the_leaf(node: DriverNode) -> None:
    """USE_SCHEMA on `A:B:C` allows loading it, but not its parents and siblings."""
    make(node, "A:B:C", "A:B:D")
    grant(node, "ana", "use_catalog", kind="catalog", on="main")
    grant(node, "ana", "use_schema", kind="schema", on="main.A:B:C")

    statuses = [node.get(f"{ALL}/{name}", user="ana").status for name in ("A%3AB%3AC", "A%3AB%3AD", "A%3AB", "A")]

    assert statuses == [200, 403, 403, 403]
    assert names(node.get(f"{ALL}?parentSchema=A%3AB", user="ana")) == ["A:B:C"]


def test_vector_6_only_an_owner_drops(node: DriverNode) -> None:
    """A user with rights on a schema may not drop it; its owner may."""
    make(node, "A:B")
    grant(node, "ana", "use_catalog", kind="catalog", on="main")
    grant(node, "ana", "use_schema", kind="schema", on="main.A:B")

    refused = node.delete(f"{ALL}/A%3AB", user="ana")
    node.done("PUT", f"{API}/lake/owners/schema/main.A%3AB", {"name": "ana", "type": "USER"})
    dropped = node.delete(f"{ALL}/A%3AB", user="ana")

    assert error_fields(refused) == (403, 1008, "ForbiddenException")
    assert dropped.json() == {"code": 0, "dropped": True}


def test_vector_7_list_has_only_direct_children(node: DriverNode) -> None:
    """A list with a parent has exactly the parent's direct children."""
    make(node, "P:Q:R", "P:Q:S:T", "P:U")

    assert names(node.get(f"{ALL}?parentSchema=P%3AQ")) == ["P:Q:R", "P:Q:S"]


def test_vectors_8_23_parent_with_child_is_not_dropped(node: DriverNode) -> None:
    """Dropping a schema with child schemas is 409 with code 1005."""
    make(node, "A:B")

    answer = node.delete(f"{ALL}/A")

    assert error_fields(answer) == (409, 1005, "NonEmptySchemaException")
    assert str(answer["message"]).startswith(
        "Failed to operate schema(s) [A] operation [DROP] under catalog [main], reason ["
    )


def test_vector_9_creator_owns_every_new_level(node: DriverNode) -> None:
    """If no parent exists, the creator owns all new levels."""
    grant(node, "ana", "use_catalog create_schema", kind="catalog", on="main")
    make(node, "A:B:C", user="ana")

    assert [owner(node, name) for name in ("A", "A:B", "A:B:C")] == ["ana"] * 3


def test_vectors_10_16_existing_parents_are_unchanged(node: DriverNode) -> None:
    """Existing ancestors keep their owner and fields. The creator owns only the new levels."""
    make(node, "A")
    before = node.get(f"{ALL}/A").body
    grant(node, "ana", "use_catalog create_schema", kind="catalog", on="main")

    make(node, "A:B:C", "A:B:D", user="ana")

    assert [owner(node, name) for name in ("A", "A:B", "A:B:C", "A:B:D")] == ["admin", "ana", "ana", "ana"]
    assert node.get(f"{ALL}/A").body == before


def test_vector_18_drop_of_a_leaf_keeps_its_parents(node: DriverNode) -> None:
    """Dropping a leaf keeps its parents, also implicit ones. A second drop returns `dropped: false`."""
    make(node, "keepA:keepB:leaf")

    answers = [node.delete(f"{ALL}/keepA%3AkeepB%3Aleaf").json() for _ in range(2)]

    assert answers == [{"code": 0, "dropped": True}, {"code": 0, "dropped": False}]
    assert names(node.get(f"{ALL}?parentSchema=keepA")) == ["keepA:keepB"]


@pytest.mark.parametrize("name", ["team:sales", "team:sales:reports", "a.b", "x=1-2"])
def test_vector_19_legal_names_are_accepted(node: DriverNode, name: str) -> None:
    """Nested names, and Gravitino's characters with the dot, are accepted."""
    answer = node.post(ALL, {"name": name})

    assert (answer.status, answer.json()["schema"]["name"]) == (200, name)


@pytest.mark.parametrize(
    "name",
    ["team::sales", ":sales", "sales:", "", ":", "a b", "a:b c:d", "-x", "é", "x" * 65, "..", "a%25b", "a\u0001b"],
)
def test_vectors_20_26_illegal_names_are_refused(node: DriverNode, name: str) -> None:
    """An empty segment or name, or one that does not match Gravitino's pattern, is refused with 400 and code 1001, and
    nothing is created.
    """
    answer = node.post(ALL, {"name": name})

    assert error_fields(answer) == (400, 1001, "IllegalArgumentException")
    assert names(node.get(ALL)) == []


def test_only_new_segments_must_match_the_name_pattern(node: DriverNode) -> None:
    """Only new segments must match Gravitino's pattern. Schemas can be created below a namespace of an Iceberg client
    with another name.
    """
    node.done("POST", "/iceberg/v1/lake.main/namespaces", {"namespace": ["free name"], "properties": {}})

    created = node.done("POST", ALL, {"name": "free name:plain"})

    assert created["schema"]["name"] == "free name:plain"


def test_vectors_24_25_list_below_existing_or_missing_parent(node: DriverNode) -> None:
    """A missing parent is 404 with code 1003; an existing one lists its children."""
    make(node, "list_foo3:a", "list_foo3:b")

    missing = node.get(f"{ALL}?parentSchema=nothing")

    assert error_fields(missing) == (404, 1003, "NoSuchSchemaException")
    assert names(node.get(f"{ALL}?parentSchema=list_foo3")) == ["list_foo3:a", "list_foo3:b"]


def test_vector_29_encoded_parent_query_is_decoded(node: DriverNode) -> None:
    """`parentSchema=a%3Ab` is the schema `a:b`; a blank parent is the catalog."""
    make(node, "a:b:c")

    assert names(node.get(f"{ALL}?parentSchema=a%3Ab")) == ["a:b:c"]
    assert names(node.get(f"{ALL}?parentSchema=%20")) == ["a"]


def test_vector_30_empty_parent_segment_returns_400(node: DriverNode) -> None:
    """An empty segment of the parent is 400, with Gravitino's message."""
    answer = node.get(f"{ALL}?parentSchema=A%3A%3AB")

    assert error_fields(answer) == (400, 1001, "IllegalArgumentException")
    assert "The parentSchema 'A::B' contains an empty segment after splitting by ':'." in str(answer["message"])


def test_list_with_parent_in_a_flat_catalog_returns_405(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a flat catalog, listing with a parent is refused with 405 and code 1006."""
    monkeypatch.setitem(catalog_checks.PROVIDERS, "flat-provider", "RELATIONAL")
    node.done("POST", f"{API}/lake/catalogs", {"name": "flat", "type": "relational", "provider": "flat-provider"})

    answer = node.get(f"{API}/lake/catalogs/flat/schemas?parentSchema=a")

    assert error_fields(answer) == (405, 1006, "UnsupportedOperationException")
    assert "The catalog [lake.flat] does not support hierarchical schemas" in str(answer["message"])


def test_existing_schema_is_409(node: DriverNode) -> None:
    """A name in use is refused with 409 and code 1004, also the name of an implicit parent."""
    make(node, "A:B")

    answers = [error_fields(node.post(ALL, {"name": name})) for name in ("A:B", "A")]

    assert answers == [(409, 1004, "SchemaAlreadyExistsException")] * 2


def test_load_of_a_missing_schema_is_404(node: DriverNode) -> None:
    """A missing schema is 404 to users who could load it."""
    answer = node.get(f"{ALL}/A%3AB")

    assert error_fields(answer) == (404, 1003, "NoSuchSchemaException")
    assert str(answer["message"]).startswith(
        "Failed to operate schema(s) [A:B] operation [LOAD] under catalog [main], reason ["
    )


def test_refusal_does_not_reveal_existence(node: DriverNode) -> None:
    """A member who may not list schemas gets the same answer for existing and missing ones."""
    make(node, "A")
    grant(node, "ana", "use_schema", kind="metalake", on="lake")

    real, absent = node.get(f"{ALL}/A", user="ana"), node.get(f"{ALL}/Z", user="ana")

    assert error_fields(real) == (403, 1008, "ForbiddenException")
    assert real.body.replace(b"main.A", b"main.Z") == absent.body
    assert real.json()["decision"]["allowed"] is False


def test_missing_returns_404_and_hidden_403_to_catalog_users(node: DriverNode) -> None:
    """Users of the catalog get 404 for a missing schema and 403 for a hidden one, on each route."""
    make(node, "A")
    grant(node, "ana", "use_catalog", kind="catalog", on="main")
    change = {"updates": [{"@type": "setProperty", "property": "k", "value": "v"}]}

    closed = [
        node.get(f"{ALL}/A", user="ana"),
        node.put(f"{ALL}/A", change, user="ana"),
        node.delete(f"{ALL}/A", user="ana"),
    ]
    absent = [node.get(f"{ALL}/Z", user="ana"), node.put(f"{ALL}/Z", change, user="ana")]

    assert [answer.status for answer in closed] == [403] * 3
    assert [error_fields(answer)[::2] for answer in absent] == [(404, "NoSuchSchemaException")] * 2
    assert node.delete(f"{ALL}/Z", user="ana")["dropped"] is False


def test_alter_changes_only_the_target_schema(node: DriverNode) -> None:
    """Altering `A:B` changes neither `A` nor `A:B:C`."""
    make(node, "A:B:C")
    others = [node.get(f"{ALL}/{name}").body for name in ("A", "A%3AB%3AC")]
    updates = [{"@type": "setProperty", "property": "k", "value": "v"}, {"@type": "removeProperty", "property": "none"}]

    changed = node.done("PUT", f"{ALL}/A%3AB", {"updates": updates})["schema"]

    assert (changed["name"], changed["properties"]) == ("A:B", {"k": "v"})
    assert [node.get(f"{ALL}/{name}").body for name in ("A", "A%3AB%3AC")] == others


@pytest.mark.parametrize(
    "update", [{"@type": "rename", "newName": "x"}, {"@type": "updateComment", "newComment": "x"}], ids=str
)
def test_rename_and_comment_updates_return_400(node: DriverNode, update: dict[str, str]) -> None:
    """An alter that renames a schema, or that updates its comment, is refused with 400."""
    make(node, "A")

    assert error_fields(node.put(f"{ALL}/A", {"updates": [update]})) == (400, 1001, "IllegalArgumentException")


def test_comment_is_the_iceberg_comment_property(node: DriverNode) -> None:
    """The comment is Iceberg's property `comment`: setting the property changes the comment, and the list of properties
    omits it.
    """
    node.done("POST", ALL, {"name": "A", "properties": {"comment": "first"}})

    first = node.done("GET", f"{ALL}/A")["schema"]
    iceberg = node.done("GET", "/iceberg/v1/lake.main/namespaces/A")["properties"]
    updates = [{"@type": "setProperty", "property": "comment", "value": "second"}]
    second = node.done("PUT", f"{ALL}/A", {"updates": updates})["schema"]
    third = node.done("PUT", f"{ALL}/A", {"updates": [{"@type": "removeProperty", "property": "comment"}]})["schema"]

    assert (first["comment"], first["properties"]) == ("first", {})
    assert iceberg["comment"] == "first"
    assert (second["comment"], second["properties"]) == ("second", {})
    assert "comment" not in third


def test_cascade_is_refused_by_name(node: DriverNode) -> None:
    """`cascade=false` is accepted. `true` in any letter case is refused with 400 and the parameter's name."""
    make(node, "A", "B")

    refused, accepted = node.delete(f"{ALL}/A?cascade=True"), node.delete(f"{ALL}/B?cascade=False")

    assert error_fields(refused) == (400, 1001, "IllegalArgumentException")
    assert "cascade" in str(refused["message"])
    assert accepted["dropped"] is True


def test_cascade_drops_models_and_lance_tables(node: DriverNode) -> None:
    """A cascade drops the models and Lance tables of the schema. Dropping a missing schema returns `dropped: false`."""
    schemas = f"{API}/lake/catalogs/m/schemas"
    node.done("POST", f"{API}/lake/catalogs", {"name": "m", "type": "model"})
    node.done("POST", schemas, {"name": "s"})
    node.done("POST", f"{schemas}/s/models", {"name": "x"})
    node.done("POST", f"{API}/lake/catalogs", {"name": "l", "type": "RELATIONAL", "provider": "lakehouse-generic"})
    make_space(node, "l", "a")
    declare(node, "l", "a", "t")

    refused = node.delete(f"{schemas}/s")
    dropped_flags = [node.delete(f"{schemas}/s?cascade=True")["dropped"] for _ in range(2)]
    lance = node.delete(f"{API}/lake/catalogs/l/schemas/a?cascade=true")["dropped"]

    assert error_fields(refused)[0] == 409
    assert (dropped_flags, lance) == ([True, False], True)
    assert node.get(f"{schemas}")["identifiers"] == []


def test_cascade_needs_the_right_to_drop_the_schema(node: DriverNode) -> None:
    """A cascade needs the right to drop the schema. A user who may use it and create objects in it is refused."""
    schemas = f"{API}/lake/catalogs/m/schemas"
    node.done("POST", f"{API}/lake/catalogs", {"name": "m", "type": "model"})
    node.done("POST", schemas, {"name": "s"})
    node.done("POST", f"{schemas}/s/models", {"name": "x"})
    grant(node, "ana", "use_catalog use_schema register_model use_model", kind="CATALOG", on="m")

    assert error_fields(node.ask("DELETE", f"{schemas}/s?cascade=true", user="ana"))[0] == 403
    assert names(node.get(f"{schemas}/s/models")) == ["x"]


def test_flat_catalog_names_can_contain_the_separator(fresh: Callable[[str], Path]) -> None:
    """Under `unrestricted`, names in flat catalogs may contain the separator, as over Iceberg REST; other characters
    are refused.
    """
    with node_at(fresh("data"), names=NamesSection(separator_policy="unrestricted")) as node:
        flat = {
            "name": "flat",
            "type": "RELATIONAL",
            "provider": "lakehouse-iceberg",
            "properties": {"nested-namespaces": "false"},
        }
        node.done("POST", f"{API}/lake/catalogs", flat)
        schemas = f"{API}/lake/catalogs/flat/schemas"
        created_name = node.done("POST", schemas, {"name": "a:b"})["schema"]["name"]
        loaded = node.done("GET", f"{schemas}/a%3Ab")["schema"]["name"]
        refused = node.post(schemas, {"name": "a:b c"})
        iceberg = node.done("GET", "/iceberg/v1/lake.flat/namespaces")["namespaces"]

    assert (created_name, loaded, iceberg) == ("a:b", "a:b", [["a:b"]])
    assert error_fields(refused) == (400, 1001, "IllegalArgumentException")


def test_dropping_in_a_missing_catalog_is_404(node: DriverNode) -> None:
    """Dropping a missing schema is not an error, but in a missing catalog it is 404."""
    answer = node.delete(f"{API}/lake/catalogs/none/schemas/A")

    assert error_fields(answer) == (404, 1003, "NoSuchCatalogException")


def test_names_are_percent_encoded_in_paths(node: DriverNode) -> None:
    """Names with a slash or an equals sign are percent-encoded in paths."""
    make(node, "a/b=c")

    assert node.get(f"{ALL}/a%2Fb%3Dc").json()["schema"]["name"] == "a/b=c"
    assert node.get(f"{ALL}/a/b=c").status == 404


@pytest.mark.parametrize("segment", ["%zz", "%ff"])
def test_badly_encoded_path_is_an_illegal_identifier(node: DriverNode, segment: str) -> None:
    """A broken escape, or bytes that are not UTF-8, is 400; percent signs in the message are doubled."""
    answer = node.get(f"{ALL}/{segment}")

    assert error_fields(answer) == (400, 1001, "IllegalNameIdentifierException")
    assert "%" not in str(answer["message"]).replace("%%", "")


def test_an_alter_without_updates_modifies_nothing(node: DriverNode) -> None:
    """An alter without updates, or with the current values, does not change the modification time and writes no change
    row.
    """
    schemas = f"{API}/lake/catalogs/main/schemas"
    node.done("POST", schemas, {"name": "a", "properties": {"k": "v"}})
    feed = "/api/limnos/v1/metalakes/lake/catalogs/main/changes"
    before = node.get(feed).json()["changes"]

    for updates in ([], [{"@type": "setProperty", "property": "k", "value": "v"}]):
        audit = node.done("PUT", f"{schemas}/a", {"updates": updates})["schema"]["audit"]
        assert "lastModifier" not in audit

    assert node.get(feed).json()["changes"] == before
    changed = node.done("PUT", f"{schemas}/a", {"updates": [{"@type": "setProperty", "property": "k", "value": "w"}]})
    assert "lastModifier" in changed["schema"]["audit"]


def test_drop_refusal_has_the_full_schema_name(node: DriverNode) -> None:
    """The refusal to drop a nested schema with content contains the schema's full name."""
    schemas = f"{API}/lake/catalogs/main/schemas"
    node.done("POST", schemas, {"name": "a:b:c"})

    answer = node.delete(f"{schemas}/a%3Ab")

    assert answer.status == 409
    assert "Namespace a:b is not empty: drop its namespace c first" in str(answer["message"])


def test_override_on_a_node_with_another_separator_loses_no_object(fresh: Callable[[str], Path]) -> None:
    """A role with an object that this node cannot spell is not overridden here: a list of what it shows would take the
    object away unseen. A node that can spell it overrides the role, and this one a role without such an object.
    """
    data = fresh("data")
    with node_at(data, names=NamesSection(separator=";")) as node, node_at(data) as other:
        use = [{"name": "use_schema", "condition": "allow"}]
        for name, levels in (("mixed", ["w;z"]), ("whole", ["plain"])):
            other.done("POST", "/iceberg/v1/lake.main/namespaces", {"namespace": levels})
            target = {"fullName": f"main.{levels[0]}", "type": "schema", "privileges": use}
            other.done("POST", f"{API}/lake/roles", {"name": name, "properties": {}, "securableObjects": [target]})
        visible = node.done("GET", f"{API}/lake/roles/mixed")["role"]["securableObjects"]

        refused = node.put(f"{API}/lake/permissions/roles/mixed", {"overrides": visible})
        whole = node.put(f"{API}/lake/permissions/roles/whole", {"overrides": []})
        left = other.done("GET", f"{API}/lake/roles/mixed")["role"]["securableObjects"]
        retry = other.put(f"{API}/lake/permissions/roles/mixed", {"overrides": []})

    assert (refused.status, whole.status, retry.status) == (400, 200, 200)
    assert "name contains ';', the separator of this server node" in str(refused["message"])
    assert [each["fullName"] for each in left] == ["main.w;z"]


def test_names_of_another_separator_are_left_out_of_lists(fresh: Callable[[str], Path]) -> None:
    """A node with another separator makes a name that this one cannot spell: lists leave it out, and both the log and
    the health report say that the separators differ.
    """
    data = fresh("data")
    with node_at(data, names=NamesSection(separator=";")) as node, node_at(data) as other:
        beats = [NodeBeats(each.built.services) for each in (node, other)]
        for levels in (["plain"], ["a:b"], ["plain", "c:d"], ["w;z"]):
            created = (other if ";" in levels[0] else node).post(
                "/iceberg/v1/lake.main/namespaces", {"namespace": levels}
            )
            assert created.status == 200, created.body
        for name, on in (("mixed", "main.w;z"), ("whole", "main.plain")):
            target = {"fullName": on, "type": "schema", "privileges": [{"name": "use_schema", "condition": "allow"}]}
            other.done("POST", f"{API}/lake/roles", {"name": name, "properties": {}, "securableObjects": [target]})
        other.done("POST", f"{API}/lake/tags", {"name": "red"})
        other.done("POST", f"{API}/lake/objects/schema/main.w;z/tags", {"tagsToAdd": ["red"]})

        listed = [
            [each["name"] for each in one.done("GET", f"{API}/lake/catalogs/main/schemas{query}")["identifiers"]]
            for one, query in ((node, ""), (other, ""), (other, "?parentSchema=plain"))
        ]
        roles = [
            node.done("GET", f"{API}/lake/roles/{name}")["role"]["securableObjects"] for name in ("mixed", "whole")
        ]
        tagged = [each.done("GET", f"{API}/lake/tags/red/objects")["metadataObjects"] for each in (node, other)]
        for one, beat in ((node, beats[0]), (other, beats[1])):
            one.runner.run(beat.beat())
        health = [each.get("/health").body.decode() for each in (node, other)]

    assert listed == [["a:b", "plain"], ["plain", "w;z"], []]
    assert [len(each) for each in roles] == [0, 1]
    assert [len(each) for each in tagged] == [0, 1]
    assert ["another separator" in each for each in health] == [True, False]
