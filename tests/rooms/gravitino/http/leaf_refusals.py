# SPDX-License-Identifier: Apache-2.0
"""The requests of a second table of refusals, `leaf_refusals.md`: for objects in schemas other than views, and for
their attachments.

Its callers have the rights that apply to these kinds. `python -m tests.rooms.gravitino.http.leaf_refusals` rewrites the
table.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.http import refusal_tables
from tests.http.driver import API, DriverNode
from tests.http.refusal_tables import RefusalCase, own
from tests.http.test_coverage import FUNCTION, POLICY

TABLE = Path(__file__).with_suffix(".md")
_USE = "use_catalog use_schema"
CALLERS: dict[str, str] = {
    "nobody": "",
    "stranger": "",
    "member": "",
    "visitor": "use_catalog",
    "uses": _USE,
    "modeler": f"{_USE} register_model",
    "model_user": f"{_USE} use_model",
    "linker": f"{_USE} use_model link_model_version",
    "half_linker": f"{_USE} link_model_version",
    "fileset_maker": f"{_USE} create_fileset",
    "fileset_reader": f"{_USE} read_fileset",
    "fileset_writer": f"{_USE} write_fileset",
    "topic_maker": f"{_USE} create_topic",
    "consumer": f"{_USE} consume_topic",
    "producer": f"{_USE} produce_topic",
    "function_maker": f"{_USE} register_function",
    "executor": f"{_USE} execute_function",
    "modifier": f"{_USE} modify_function",
    "policy_maker": f"{_USE} create_policy",
    "applier": f"{_USE} apply_tag apply_policy",
    "describer": f"{_USE} select_table apply_tag apply_policy",
    "user_keeper": "manage_users",
    "creator": f"{_USE} create_table",
    "reader": f"{_USE} select_table",
    "writer": f"{_USE} modify_table",
    "keyless": "use_schema select_table read_fileset consume_topic use_model execute_function",
    "leaf_owner": _USE,
    "keeper": "use_catalog",
    "owner": "",
    "laker": "",
    "admin": "",
}
"""Each column: the caller's privileges on the metalake. `nobody` sends no credentials, and `stranger` is not a user of
the metalake. `keyless` may use no catalog. `leaf_owner` owns the objects in the schemas, `keeper` the schemas, `owner`
the catalogs, `laker` the metalake. `admin` is a service admin, and only a member of the metalake, who owns the roles.
"""
CATALOGS = {"models": "model", "files": "fileset", "topics": "messaging"}
"""A catalog of each type besides `main`, which is relational. The type is also the provider."""
OBJECTS = "/metalakes/{m}/objects/{type}/{fullName}"
SCHEMAS = "/metalakes/{m}/catalogs/{c}/schemas/{s}"
PROPERTY = {"updates": [{"@type": "setProperty", "property": "p", "value": "v"}]}
URI = {"uri": "s3://lake/churn"}


def prepare(node: DriverNode) -> None:
    """Create all users and objects of the rows."""
    lake = f"{API}/lake"
    refusal_tables.hire(node, CALLERS)
    for name, kind in CATALOGS.items():
        node.done("POST", f"{lake}/catalogs", {"name": name, "type": kind, "provider": kind})
    for name in ("main", *CATALOGS):
        node.done("POST", f"{lake}/catalogs/{name}/schemas", {"name": "there"})
    prepare_models(node)
    prepare_tables(node)
    prepare_hung(node)
    for kind, catalog in (("fileset", "files"), ("topic", "topics")):
        for name in ("churn", *(f"{name}_{who}" for name in ("alter", "drop") for who in CALLERS)):
            node.done("POST", f"{API}/lake/catalogs/{catalog}/schemas/there/{kind}s", {"name": name})
            own(node, "leaf_owner", kind.upper(), f"{catalog}.there.{name}")
    for who, privileges in CALLERS.items():
        if privileges:
            refusal_tables.grant(node, who, privileges, kind="METALAKE", on="lake")
    for name in ("main", *CATALOGS):
        own(node, "keeper", "SCHEMA", f"{name}.there")
        own(node, "owner", "CATALOG", name)
    own(node, "laker", "METALAKE", "lake")


def prepare_models(node: DriverNode) -> None:
    """Create a model that all callers read, and for each caller a model to change and a model to drop."""
    path = f"{API}/lake/catalogs/models/schemas/there/models"
    for name in ("churn", *(f"{name}_{who}" for name in ("alter", "drop") for who in CALLERS)):
        node.done("POST", path, {"name": name})
        for alias in ("new", "old"):
            node.done("POST", f"{path}/{name}/versions", {**URI, "aliases": [alias]})
        own(node, "leaf_owner", "MODEL", f"models.there.{name}")


def prepare_hung(node: DriverNode) -> None:
    """Create functions and policies, some statistics, and users to remove."""
    for name in ("churn", *(f"{name}_{who}" for name in ("alter", "drop") for who in CALLERS)):
        node.done("POST", f"{API}/lake/catalogs/main/schemas/there/functions", {"name": name, **FUNCTION})
        own(node, "leaf_owner", "FUNCTION", f"main.there.{name}")
        node.done("POST", f"{API}/lake/policies", {"name": name, **POLICY})
        own(node, "leaf_owner", "POLICY", name)
    node.done("POST", f"{API}/lake/policies", {"name": "columned", **COLUMN_POLICY})
    node.done("POST", f"{API}/lake/tags", {"name": "churn"})
    for kind, name in (("POLICY", "columned"), ("TAG", "churn")):
        own(node, "leaf_owner", kind, name)
    for who in CALLERS:
        node.done("POST", f"{API}/lake/users", {"name": f"drop_{who}"})


COLUMNS = [{"name": "id", "type": "long"}, {"name": "churn", "type": "long"}]
COLUMN_POLICY = {"policyType": "custom", "content": {"supportedObjectTypes": ["COLUMN"]}}


def prepare_tables(node: DriverNode) -> None:
    """Create tables."""
    path = f"{API}/lake/catalogs/main/schemas/there/tables"
    for name in ("churn", *(f"{name}_{who}" for name in ("alter", "rename", "drop") for who in CALLERS)):
        node.done("POST", path, {"name": name, "columns": COLUMNS})
        own(node, "leaf_owner", "TABLE", f"main.there.{name}")


def _case(route: str, thing: str, *names: str, body: object = None, query: str = "") -> RefusalCase:
    return refusal_tables.case(route, thing, *names, root="/api", body=body, query=query)


def cases(_node: DriverNode, who: str) -> Iterator[RefusalCase]:
    """Return the rows of the table for one caller."""
    yield from _of_models(who)
    yield from _of_tables(who)
    yield from _of_functions(who)
    yield from _of_policies(who)
    yield from _of_objects()
    yield from _of_columns(who)
    yield from _of_many(who)
    for kind, catalog in (("fileset", "files"), ("topic", "topics")):
        yield from _of_leaves(who, kind, catalog=catalog)
    for name, thing in (("churn", "fileset"), ("gone", "no fileset")):
        one = f"{SCHEMAS}/filesets/{{fileset}}"
        yield _case(f"GET {one}/files", thing, "lake", "files", "there", name)
        yield _case(f"GET {one}/location", thing, "lake", "files", "there", name, query="?sub_path=a")


def _of_models(who: str) -> Iterator[RefusalCase]:
    models, at = f"{SCHEMAS}/models", ("lake", "models")
    for name, thing in (("there", "schema"), ("gone", "no schema")):
        yield _case(f"GET {models}", f"of {thing}", *at, name)
        yield _case(f"POST {models}", f"in {thing}", *at, name, body={"name": f"new_{who}"})
    yield _case(f"POST {models}", "taken name", *at, "there", body={"name": "churn"})
    for name, thing in (("churn", "model"), ("gone", "no model")):
        changed = name if name == "gone" else f"alter_{who}"
        one = f"{models}/{{model}}"
        yield _case(f"GET {one}", thing, *at, "there", name)
        yield _case(f"PUT {one}", thing, *at, "there", changed, body=PROPERTY)
        yield _case(f"DELETE {one}", thing, *at, "there", name if name == "gone" else f"drop_{who}")
        yield _case(f"GET {one}/versions", thing, *at, "there", name)
        yield _case(f"GET {one}/versions", f"{thing}, details", *at, "there", name, query="?details=true")
        yield _case(f"POST {one}/versions", thing, *at, "there", changed, body=URI)
        for part, version in (("versions/{version}", "0"), ("aliases/{alias}", "old")):
            yield _case(f"GET {one}/{part}", thing, *at, "there", name, version)
            yield _case(f"GET {one}/{part}/uri", thing, *at, "there", name, version)
            yield _case(f"PUT {one}/{part}", thing, *at, "there", changed, version, body=PROPERTY)
            yield _case(f"DELETE {one}/{part}", thing, *at, "there", changed, version)


def _of_leaves(who: str, kind: str, *, catalog: str) -> Iterator[RefusalCase]:
    leaves, at = f"{SCHEMAS}/{kind}s", ("lake", catalog)
    for name, thing in (("there", "schema"), ("gone", "no schema")):
        yield _case(f"GET {leaves}", f"of {thing}", *at, name)
        yield _case(f"POST {leaves}", f"in {thing}", *at, name, body={"name": f"new_{who}"})
    yield _case(f"POST {leaves}", "taken name", *at, "there", body={"name": "churn"})
    for name, thing in (("churn", kind), ("gone", f"no {kind}")):
        one = f"{leaves}/{{{kind}}}"
        yield _case(f"GET {one}", thing, *at, "there", name)
        yield _case(f"PUT {one}", thing, *at, "there", name if name == "gone" else f"alter_{who}", body=PROPERTY)
        yield _case(f"DELETE {one}", thing, *at, "there", name if name == "gone" else f"drop_{who}")


def _of_tables(who: str) -> Iterator[RefusalCase]:
    tables, at = f"{SCHEMAS}/tables", ("lake", "main")
    for name, thing in (("there", "schema"), ("gone", "no schema")):
        yield _case(f"POST {tables}", f"in {thing}", *at, name, body={"name": f"new_{who}", "columns": COLUMNS})
    yield _case(f"POST {tables}", "taken name", *at, "there", body={"name": "churn", "columns": COLUMNS})
    one = f"{tables}/{{t}}"
    for name, thing in (("churn", "table"), ("gone", "no table")):
        own_name = {verb: name if name == "gone" else f"{verb}_{who}" for verb in ("alter", "rename", "drop")}
        rename = {"@type": "rename", "newName": f"named_{who}"}
        yield _case(f"GET {one}", f"{thing}, to modify", *at, "there", name, query="?privileges=MODIFY_TABLE")
        yield _case(f"PUT {one}", thing, *at, "there", own_name["alter"], body=PROPERTY)
        yield _case(f"PUT {one}", f"{thing}, renamed", *at, "there", own_name["rename"], body={"updates": [rename]})
        yield _case(f"DELETE {one}", thing, *at, "there", own_name["drop"])
        yield _case(f"GET {one}/partitions", thing, *at, "there", name)
        yield _case(f"POST {one}/partitions", thing, *at, "there", name, body={"partitions": []})
        yield _case(f"GET {one}/partitions/{{p}}", thing, *at, "there", name, "p")
        yield _case(f"DELETE {one}/partitions/{{p}}", thing, *at, "there", name, "p")


def _of_functions(who: str) -> Iterator[RefusalCase]:
    functions, at = f"{SCHEMAS}/functions", ("lake", "main")
    for name, thing in (("there", "schema"), ("gone", "no schema")):
        yield _case(f"GET {functions}", f"of {thing}", *at, name)
        yield _case(f"GET {functions}", f"of {thing}, details", *at, name, query="?details=true")
        yield _case(f"POST {functions}", f"in {thing}", *at, name, body={"name": f"new_{who}", **FUNCTION})
    yield _case(f"POST {functions}", "taken name", *at, "there", body={"name": "churn", **FUNCTION})
    comment = {"updates": [{"@type": "updateComment", "newComment": "c"}]}
    for name, thing in (("churn", "function"), ("gone", "no function")):
        one = f"{functions}/{{function}}"
        yield _case(f"GET {one}", thing, *at, "there", name)
        yield _case(f"PUT {one}", thing, *at, "there", name if name == "gone" else f"alter_{who}", body=comment)
        yield _case(f"DELETE {one}", thing, *at, "there", name if name == "gone" else f"drop_{who}")


def _of_policies(who: str) -> Iterator[RefusalCase]:
    policies, one = "/metalakes/{m}/policies", "/metalakes/{m}/policies/{policy}"
    yield _case(f"GET {policies}", "", "lake")
    yield _case(f"POST {policies}", "", "lake", body={"name": f"new_{who}", **POLICY})
    comment = {"updates": [{"@type": "updateComment", "newComment": "c"}]}
    for name, thing in (("churn", "policy"), ("gone", "no policy")):
        changed = name if name == "gone" else f"alter_{who}"
        yield _case(f"GET {one}", thing, "lake", name)
        yield _case(f"GET {one}/objects", thing, "lake", name)
        yield _case(f"PUT {one}", thing, "lake", changed, body=comment)
        yield _case(f"PATCH {one}", thing, "lake", changed, body={"enable": False})
        yield _case(f"DELETE {one}", thing, "lake", name if name == "gone" else f"drop_{who}")
        yield _case(
            f"POST {OBJECTS}/policies",
            thing,
            "lake",
            "TABLE",
            f"main.there.alter_{who}",
            body={"policiesToAdd": [name]},
        )
    for on, thing in (("churn", "table"), ("gone", "no table")):
        at = ("lake", "TABLE", f"main.there.{on}")
        yield _case(f"GET {OBJECTS}/policies", thing, *at)
        yield _case(f"GET {OBJECTS}/policies/{{policy}}", thing, *at, "churn")
        yield _case(f"POST {OBJECTS}/policies", f"on {thing}", *at, body={"policiesToRemove": ["churn"]})


def _of_objects() -> Iterator[RefusalCase]:
    parts = f"{OBJECTS}/statistics/partitions"
    for on, thing in (("churn", "table"), ("gone", "no table")):
        at = ("lake", "TABLE", f"main.there.{on}")
        yield _case(f"GET {OBJECTS}/statistics", thing, *at)
        yield _case(f"PUT {OBJECTS}/statistics", thing, *at, body={"updates": {"custom-n": 1}})
        yield _case(f"POST {OBJECTS}/statistics", thing, *at, body={"names": ["custom-n"]})
        yield _case(f"GET {parts}", thing, *at, query="?from=p")
        yield _case(
            f"PUT {parts}", thing, *at, body={"updates": [{"partitionName": "p", "statistics": {"custom-n": 1}}]}
        )
        yield _case(
            f"POST {parts}", thing, *at, body={"drops": [{"partitionName": "p", "statisticNames": ["custom-n"]}]}
        )
        yield _case(f"GET {OBJECTS}/credentials", thing, *at)
    for on, thing in (("churn", "fileset"), ("gone", "no fileset")):
        yield _case(f"GET {OBJECTS}/credentials", thing, "lake", "FILESET", f"files.there.{on}")


def _of_columns(who: str) -> Iterator[RefusalCase]:
    """Yield rows about attachments of columns: of a table that all callers read, and of one that each caller
    changes.
    """
    for on, column, thing in (
        ("churn", "churn", "column"),
        ("churn", "gone", "no column"),
        ("gone", "churn", "column of no table"),
    ):
        changed = f"main.there.{on if on == 'gone' else f'alter_{who}'}.{column}"
        at = ("lake", "COLUMN", f"main.there.{on}.{column}")
        for word, part, names in (("tags", "tag", "churn"), ("policies", "policy", "columned")):
            yield _case(f"GET {OBJECTS}/{word}", thing, *at)
            yield _case(f"GET {OBJECTS}/{word}/{{{part}}}", thing, *at, names)
            key = f"{word}ToAdd"
            yield _case(f"POST {OBJECTS}/{word}", thing, "lake", "COLUMN", changed, body={key: [names]})
        pairs = {"tagsToAdd": [{"name": "churn", "value": "v"}]}
        yield _case(f"POST {OBJECTS}/tags", f"{thing}, with a value", "lake", "COLUMN", changed, body=pairs)
        yield _case(f"GET {OBJECTS}/statistics", thing, *at)
        yield _case(f"PUT {OBJECTS}/statistics", thing, "lake", "COLUMN", changed, body={"updates": {"custom-n": 1}})
        yield _case(f"POST {OBJECTS}/statistics", thing, "lake", "COLUMN", changed, body={"names": ["custom-n"]})
        yield _case(f"GET {OBJECTS}/statistics/partitions", thing, *at, query="?from=p")
        yield _case(f"GET {OBJECTS}/credentials", thing, *at)
        yield _case(f"GET {OBJECTS}/roles", thing, *at)
    yield _case("GET /metalakes/{m}/tags/{tag}/objects", "by value", "lake", "churn", query="?value=v")


def _of_many(who: str) -> Iterator[RefusalCase]:
    users = "/bulk/metalakes/{m}/users"
    yield _case(f"POST {users}/add", "", "lake", body={"users": [{"name": f"new_{who}"}]})
    yield _case(f"POST {users}/remove", "", "lake", body={"names": [f"drop_{who}"]})


def same_words(message: str, who: str) -> str:
    """Return a refusal's message with the object's name replaced by a fixed one."""
    for name in (f"alter_{who}", f"rename_{who}", f"drop_{who}", "churn", "gone"):
        message = message.replace(name, "there")
    return message


if __name__ == "__main__":
    refusal_tables.write(TABLE, cases, CALLERS, make=prepare)
