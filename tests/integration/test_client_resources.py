"""The client's calls on models and filesets, against a real server."""

from __future__ import annotations

from pathlib import Path

import pytest

from limnos.client import Client
from tests.integration.live import LiveServer

pytestmark = pytest.mark.integration


def test_models_by_number_and_alias(server: LiveServer) -> None:
    """A model gets versions, which are found by both, and goes with them."""
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
        assert [client.models.unlink(path, which) for which in ("v0", 0, 1)] == [True, False, True]
        assert client.models.delete(path)


def test_filesets_and_what_lies_in_them(server: LiveServer) -> None:
    """A managed fileset has a directory; what is put there is listed."""
    with Client(server.uri, token=server.token) as client:
        client.catalogs.create("client_files", type="fileset", provider="fileset")
        client.namespaces.create("client_files.a")
        made = client.filesets.create("client_files.a.f", comment="c")
        directory = Path(made.storage_location.removeprefix("file://"))
        (directory / "sub").mkdir()
        (directory / "sub" / "b.csv").write_text("123")

        assert (made.type, client.filesets.get("client_files.a.f").comment) == ("managed", "c")
        assert client.filesets.list("client_files.a") == (("client_files", "a", "f"),)
        assert [(each.name, each.is_dir) for each in client.filesets.files("client_files.a.f")] == [("sub", True)]
        assert [(each.name, each.size) for each in client.filesets.files("client_files.a.f", "/sub")] == [("b.csv", 3)]
        assert client.filesets.location("client_files.a.f", "sub/b.csv") == f"{made.storage_location}/sub/b.csv"
        assert [client.filesets.delete("client_files.a.f") for _ in range(2)] == [True, False]
