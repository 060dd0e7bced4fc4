# SPDX-License-Identifier: Apache-2.0
"""The client's calls on models, filesets, functions, policies and values of tags, against a real server."""

from __future__ import annotations

from pathlib import Path

import pytest

from limnos.client import Client
from limnos.client.errors import ConflictError
from tests.integration.live import LiveServer

pytestmark = pytest.mark.integration


def test_model_versions_are_loaded_by_number_and_alias(server: LiveServer) -> None:
    """Model versions are found by number and by alias, and are deleted with the model."""
    with Client(server.uri, token=server.token) as client:
        client.catalogs.create("client_models", type="model", provider="model")
        client.namespaces.create("client_models.a")
        client.models.register("client_models.a.churn", comment="c", properties={"k": "v"})
        for number in (0, 1):
            client.models.link("client_models.a.churn", {"unknown": f"s3://x/{number}"}, aliases=[f"v{number}"])
        path = "client_models.a.churn"

        assert client.models.list("client_models.a") == (("client_models", "a", "churn"),)
        assert (client.models.get(path).comment, client.models.get(path).latest_version) == ("c", 2)
        assert [(each.version, each.aliases) for each in client.models.versions(path)] == [(0, ("v0",)), (1, ("v1",))]
        assert client.models.version(path, "v1").uris == client.models.version(path, 1).uris == {"unknown": "s3://x/1"}
        with pytest.raises(ConflictError, match="remove it from that version first"):
            client.models.set_aliases(path, 1, add=["v0"])
        assert client.models.set_aliases(path, "v0", remove=["v0"]).aliases == ()
        assert set(client.models.set_aliases(path, 1, add=["v0", "prod"]).aliases) == {"v0", "v1", "prod"}
        assert client.models.set_aliases(path, "prod", remove=["v0", "prod"]).aliases == ("v1",)
        client.models.set_aliases(path, 0, add=["v0"])
        assert [client.models.unlink(path, which) for which in ("v0", 0, 1)] == [True, False, True]
        assert client.models.delete(path)


def test_files_of_a_managed_fileset_are_listed(server: LiveServer) -> None:
    """A managed fileset has a directory; its files are listed."""
    with Client(server.uri, token=server.token) as client:
        client.catalogs.create("client_files", type="fileset", provider="fileset")
        client.namespaces.create("client_files.a")
        fileset = client.filesets.create("client_files.a.f", comment="c")
        directory = Path(fileset.storage_location.removeprefix("file://"))
        (directory / "sub").mkdir()
        (directory / "sub" / "b.csv").write_text("123")

        assert (fileset.type, client.filesets.get("client_files.a.f").comment) == ("managed", "c")
        assert client.filesets.list("client_files.a") == (("client_files", "a", "f"),)
        assert [(each.name, each.is_dir) for each in client.filesets.files("client_files.a.f")] == [("sub", True)]
        assert [(each.name, each.size) for each in client.filesets.files("client_files.a.f", "/sub")] == [("b.csv", 3)]
        assert client.filesets.location("client_files.a.f", "sub/b.csv") == f"{fileset.storage_location}/sub/b.csv"
        assert [client.filesets.delete("client_files.a.f") for _ in range(2)] == [True, False]


def test_function_in_nested_namespace_is_registered_and_dropped(server: LiveServer) -> None:
    """A function is registered in a nested namespace, loaded by its path, and dropped once."""
    definition = {
        "parameters": [],
        "returnType": "integer",
        "impls": [{"language": "SQL", "runtime": "SPARK", "sql": "1"}],
    }
    with Client(server.uri, token=server.token) as client:
        for namespace in ("main.client_f", "main.client_f.deep"):
            client.namespaces.create(namespace)
            path = f"{namespace}.one"
            function = client.functions.register(path, [definition], deterministic=True, comment="c")

            assert (function.name, client.functions.get(path).comment) == ("one", "c")
            assert client.functions.get(path).definitions[0]["returnType"] == "integer"
            assert client.functions.list(namespace) == ((*namespace.split("."), "one"),)
            assert [client.functions.delete(path) for _ in range(2)] == [True, False]


def test_policy_is_inherited_and_tag_values_are_returned(server: LiveServer) -> None:
    """A policy is attached, inherited by a child, disabled and deleted; a tag has the assigned values."""
    content = {"customRules": {"days": 7}, "supportedObjectTypes": ["CATALOG", "SCHEMA"], "properties": {}}
    with Client(server.uri, token=server.token) as client:
        client.namespaces.create("main.client_p")
        client.policies.create("client_keep", content)
        assert client.policies.change("main", kind="catalog", adds=["client_keep"]) == ("client_keep",)
        (policy,) = client.policies.on("main.client_p", kind="namespace")
        assert (policy.inherited, policy.content["customRules"]) == (True, {"days": 7})
        assert [each.full_name for each in client.policies.objects("client_keep")] == ["main"]
        client.policies.enable("client_keep", enabled=False)
        assert not client.policies.get("client_keep").enabled
        assert [client.policies.delete("client_keep") for _ in range(2)] == [True, False]

        client.tags.create("client_level", allowed_values=["low", "high"])
        client.tags.change_values(
            "main.client_p", kind="namespace", adds=[("client_level", "low"), ("client_level", "high")]
        )
        client.tags.change_values("main.client_p", kind="namespace", removes=[("client_level", "low")])
        (tag,) = client.tags.on("main.client_p", kind="namespace")
        assert (tag.assignment_values, tag.allowed_values) == (("high",), ("low", "high"))
        assert [each.full_name for each in client.tags.objects("client_level", value="high")] == ["main.client_p"]
        assert client.tags.objects("client_level", value="low") == ()
