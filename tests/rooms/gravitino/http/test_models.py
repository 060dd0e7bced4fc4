# SPDX-License-Identifier: Apache-2.0
"""Models over Gravitino REST: registered, altered and deleted; versions linked and loaded by number and alias."""

from __future__ import annotations

import pytest

from tests.http.driver import API, OWN, DriverNode
from tests.http.iceberg.wire import SCHEMA

CATALOG = f"{API}/lake/catalogs/ml"
MODELS = f"{CATALOG}/schemas/churn/models"
VERSIONS = f"{MODELS}/m/versions"


@pytest.fixture
def ml(node: DriverNode) -> DriverNode:
    """A node with a catalog for models, made without a provider, and a model in it."""
    catalog = node.done("POST", f"{API}/lake/catalogs", {"name": "ml", "type": "model", "properties": {}})["catalog"]
    assert (catalog["type"], catalog["provider"]) == ("model", "model")
    node.done("POST", f"{CATALOG}/schemas", {"name": "churn"})
    node.done("POST", MODELS, {"name": "m", "comment": "c", "properties": {"k": "v"}})
    return node


def link(node: DriverNode, *aliases: str, **uris: str) -> None:
    """Link a version to the model."""
    node.done("POST", VERSIONS, {"uris": uris, "aliases": list(aliases), "comment": "of " + ",".join(uris)})


def test_model_lifecycle(ml: DriverNode) -> None:
    """A model is returned as sent, and can be listed, changed, renamed, dropped and restored with its versions."""
    link(ml, "new", unknown="s3://lake/0")

    loaded = ml.done("GET", f"{MODELS}/m")["model"]
    listed = ml.done("GET", MODELS)["identifiers"]
    changes = [
        {"@type": "rename", "newName": "n"},
        {"@type": "updateComment", "newComment": "d"},
        {"@type": "setProperty", "property": "a", "value": "b"},
        {"@type": "removeProperty", "property": "k"},
    ]
    altered = ml.done("PUT", f"{MODELS}/m", {"updates": changes})["model"]
    dropped = [ml.done("DELETE", f"{MODELS}/n")["dropped"] for _ in range(2)]
    trash = f"{OWN}/metalakes/lake/catalogs/ml/trash"
    (trash_entry,) = ml.get(trash).json()["trash"]
    ml.done("POST", f"{trash}/{trash_entry['id']}/undrop", {})
    again = ml.done("GET", f"{MODELS}/n/aliases/new")["modelVersion"]

    assert loaded.pop("audit")["creator"] == "admin"
    assert loaded == {"name": "m", "comment": "c", "properties": {"k": "v"}, "latestVersion": 1}
    assert listed == [{"namespace": ["lake", "ml", "churn"], "name": "m"}]
    assert (altered["name"], altered["comment"], altered["properties"]) == ("n", "d", {"a": "b"})
    assert dropped == [True, False]
    assert again["uris"] == {"unknown": "s3://lake/0"}


def test_version_numbers_are_never_reused(ml: DriverNode) -> None:
    """A version number is never reused. A version can be loaded by its number and by each of its aliases."""
    link(ml, "first", unknown="s3://lake/0")
    link(ml, "second", "best", unknown="s3://lake/1", backup="s3://other/1")
    deleted = [ml.done("DELETE", f"{VERSIONS}/1")["dropped"] for _ in range(2)]
    link(ml, "best", unknown="s3://lake/2")

    numbers = ml.done("GET", VERSIONS)["versions"]
    infos = ml.done("GET", f"{VERSIONS}?details=true")["infos"]
    one = ml.done("GET", f"{MODELS}/m/aliases/best")["modelVersion"]

    assert deleted == [True, False]
    assert numbers == [0, 2]
    assert [each["aliases"] for each in infos] == [["first"], ["best"]]
    assert one.pop("audit")["creator"] == "admin"
    assert one == {
        "version": 2,
        "comment": "of unknown",
        "aliases": ["best"],
        "uri": "s3://lake/2",
        "uris": {"unknown": "s3://lake/2"},
        "properties": {},
    }
    assert ml.done("GET", f"{MODELS}/m")["model"]["latestVersion"] == 3


def test_version_uri_is_selected_by_name_or_default(ml: DriverNode) -> None:
    """The URI is the requested one; else the version's default, the model's default, or the only one."""
    link(ml, "one", hdfs="hdfs://x")
    link(ml, "two", s3="s3://x", gcs="gs://x")

    def uri(which: str, query: str = "") -> object:
        answer = ml.get(f"{MODELS}/m/{which}/uri{query}")
        return answer["uri"] if answer.status == 200 else (answer.status, answer["type"])

    only, unclear, named = uri("aliases/one"), uri("versions/1"), uri("versions/1", "?uriName=gcs")
    missing = uri("aliases/two", "?uriName=hdfs")
    default = {"@type": "setProperty", "property": "default-uri-name", "value": "gcs"}
    ml.done("PUT", f"{MODELS}/m", {"updates": [default]})
    of_model = uri("versions/1")
    ml.done("PUT", f"{VERSIONS}/1", {"updates": [{**default, "value": "s3"}]})

    assert (only, unclear, named) == ("hdfs://x", (400, "IllegalArgumentException"), "gs://x")
    assert missing == (404, "NoSuchModelVersionURINameException")
    assert (of_model, uri("aliases/two")) == ("gs://x", "s3://x")


def test_version_changes_are_atomic(ml: DriverNode) -> None:
    """Comment, properties, URIs and aliases of a version can be changed by number and by alias. A failing change of a
    request rolls back all others.
    """
    link(ml, "a", "b", s3="s3://x", gcs="gs://x")
    changes = [
        {"@type": "updateComment", "newComment": "d"},
        {"@type": "setProperty", "property": "k", "value": "v"},
        {"@type": "updateUri", "uriName": "s3", "newUri": "s3://y"},
        {"@type": "addUri", "uriName": "hdfs", "uri": "hdfs://x"},
        {"@type": "removeUri", "uriName": "gcs"},
        {"@type": "updateAliases", "aliasesToAdd": ["c"], "aliasesToRemove": ["a"]},
    ]

    changed = ml.done("PUT", f"{MODELS}/m/aliases/a", {"updates": changes})["modelVersion"]
    refused = ml.put(f"{VERSIONS}/0", {"updates": [*changes[:2], {"@type": "removeUri", "uriName": "none"}]})

    assert changed.pop("audit")["lastModifier"] == "admin"
    assert changed == {
        "version": 0,
        "comment": "d",
        "aliases": ["b", "c"],
        "uris": {"s3": "s3://y", "hdfs": "hdfs://x"},
        "properties": {"k": "v"},
    }
    assert (refused.status, refused["type"]) == (400, "IllegalArgumentException")
    assert ml.done("GET", f"{VERSIONS}/0")["modelVersion"]["uris"] == changed["uris"]


def test_used_alias_is_refused(ml: DriverNode) -> None:
    """An alias in use is refused, and the request creates no version and uses no number."""
    link(ml, "best", unknown="s3://lake/0")

    conflict = ml.post(VERSIONS, {"uri": "s3://lake/1", "aliases": ["other", "best"]})
    link(ml, "third", unknown="s3://lake/1")
    moved = ml.put(f"{VERSIONS}/1", {"updates": [{"@type": "updateAliases", "aliasesToAdd": ["best"]}]})

    assert (conflict.status, conflict["code"], conflict["type"]) == (
        409,
        1004,
        "ModelVersionAliasesAlreadyExistException",
    )
    assert (moved.status, moved["type"]) == (409, "ModelVersionAliasesAlreadyExistException")
    assert ml.done("GET", VERSIONS)["versions"] == [0, 1]
    assert ml.get(f"{MODELS}/m/aliases/other")["type"] == "NoSuchModelVersionException"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"uris": {}},
        {"uri": " "},
        {"uris": {"": "s3://x"}},
        {"uri": "s3://x", "aliases": [" "]},
        {"uri": "s3://x", "aliases": ["x" * 300]},
        {"uri": "s3://x", "aliases": "a"},
        {"uri": "s3://x", "size": 1},
    ],
    ids=str,
)
def test_version_without_uri_or_with_invalid_name_returns_400(ml: DriverNode, body: object) -> None:
    """A version without a URI, or with an invalid name, is 400."""
    answer = ml.post(VERSIONS, body)

    assert (answer.status, answer["code"]) == (400, 1001)
    assert ml.done("GET", VERSIONS)["versions"] == []


@pytest.mark.parametrize("number", ["x", "-1", "1.5", "9" * 30])
def test_malformed_version_number_returns_404(ml: DriverNode, number: str) -> None:
    """A malformed version number is 404."""
    assert ml.get(f"{VERSIONS}/{number}")["type"] == "NoSuchModelVersionException"


def test_catalog_refuses_objects_of_other_types(ml: DriverNode) -> None:
    """A catalog for models refuses tables and nested schemas, and a catalog for tables refuses models."""
    ml.done("POST", f"{API}/lake/catalogs/main/schemas", {"name": "a"})

    model = ml.post(f"{API}/lake/catalogs/main/schemas/a/models", {"name": "m"})
    nested = ml.post("/iceberg/v1/lake.ml/namespaces", {"namespace": ["churn", "deep"]})
    table = ml.post("/iceberg/v1/lake.ml/namespaces/churn/tables", {"name": "t", "schema": SCHEMA})

    assert (model.status, model["code"]) == (405, 1006)
    assert "cannot contain models" in str(model["message"])
    assert nested.status == 406
    assert table.status == 400
    assert ml.done("GET", "/iceberg/v1/lake.ml/namespaces/churn/tables")["identifiers"] == []
    assert ml.done("GET", f"{API}/lake/catalogs/main/schemas/a/models")["identifiers"] == []


def test_models_support_tags_owners_and_grants(ml: DriverNode) -> None:
    """A model is tagged, owned, granted on and explained like every other object."""
    ml.done("POST", f"{API}/lake/tags", {"name": "red"})
    ml.done("POST", f"{API}/lake/users", {"name": "ana"})
    tagged = ml.done("POST", f"{API}/lake/objects/model/ml.churn.m/tags", {"tagsToAdd": ["red"]})
    rights = [
        ("catalog", "ml", ["use_catalog"]),
        ("schema", "ml.churn", ["use_schema"]),
        ("model", "ml.churn.m", ["use_model"]),
    ]
    objects = [
        {"fullName": name, "type": kind, "privileges": [{"name": each, "condition": "allow"} for each in names]}
        for kind, name, names in rights
    ]
    before = ml.get(f"{MODELS}/m", user="ana").status
    ml.done("POST", f"{API}/lake/roles", {"name": "r", "properties": {}, "securableObjects": objects})
    ml.done("PUT", f"{API}/lake/permissions/users/ana/grant", {"roleNames": ["r"]})

    assert tagged["names"] == ["red"]
    assert (before, ml.get(f"{MODELS}/m", user="ana").status) == (403, 200)
    assert ml.get(f"{MODELS}/m", user="ana")["model"]["name"] == "m"  # type: ignore[index]
    assert ml.put(f"{MODELS}/m", {"updates": []}, user="ana").status == 403
    ml.done("PUT", f"{API}/lake/owners/model/ml.churn.m", {"name": "ana", "type": "USER"})
    assert ml.put(f"{MODELS}/m", {"updates": []}, user="ana").status == 200


def test_alias_that_is_a_number_is_refused(ml: DriverNode) -> None:
    """Clients take it for the number of a version."""
    answers = [ml.post(VERSIONS, {"uri": "s3://lake/1", "aliases": [alias]}) for alias in ("42", "v42")]

    assert [answer.status for answer in answers] == [400, 200]


def test_default_uri_must_be_one_of_the_version(ml: DriverNode) -> None:
    """A default that names no URI of the version is refused, when it is linked and when it is changed."""
    properties = {"default-uri-name": "gcs"}
    linked = ml.post(VERSIONS, {"uris": {"s3": "s3://lake/0"}, "properties": properties})
    ml.done("POST", VERSIONS, {"uris": {"s3": "s3://lake/0", "gcs": "gs://lake/0"}, "properties": properties})
    chosen = {"@type": "setProperty", "property": "default-uri-name", "value": "none"}
    removed = {"@type": "removeUri", "uriName": "gcs"}

    refused = [linked, *(ml.put(f"{VERSIONS}/0", {"updates": [each]}) for each in (chosen, removed))]
    ml.done("PUT", f"{VERSIONS}/0", {"updates": [{**chosen, "value": "s3"}, removed]})

    assert [answer.status for answer in refused] == [400, 400, 400]
    assert all("which is no URI of the version" in answer.json()["message"] for answer in refused)
    assert ml.done("GET", f"{VERSIONS}/0/uri")["uri"] == "s3://lake/0"


def test_two_values_of_one_uri_are_refused(ml: DriverNode) -> None:
    """`uri` is the URI with the name `unknown`: another value of that name is refused, the same one is not."""
    other = ml.post(VERSIONS, {"uri": "s3://lake/0", "uris": {"unknown": "s3://lake/1"}})
    ml.done("POST", VERSIONS, {"uri": "s3://lake/0", "uris": {"unknown": "s3://lake/0"}})

    assert (other.status, "uris.unknown" in other.json()["message"]) == (400, True)
    assert ml.done("GET", VERSIONS)["versions"] == [0]
