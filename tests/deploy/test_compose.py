# SPDX-License-Identifier: Apache-2.0
"""The compose file: its schema, settings, images and ports, and its parts, which are run without containers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow as pa
import pytest
import yaml
from pyiceberg.catalog import load_catalog

from limnos.config.loading import load
from tests.backends import postgres_server
from tests.deploy.named_things import DEPLOY, ROOT, settings_of
from tests.nodes.process import Process
from tests.objects import objects

COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
SERVICES = COMPOSE["services"]
SETTINGS = COMPOSE["configs"]["limnos"]["content"]
STORE = "http://objects:8333"


def containerfile(service: str) -> Path:
    """Return the file that builds the image of a service."""
    return ROOT / str(SERVICES[service]["build"]["dockerfile"])


def test_file_has_the_form_of_compose() -> None:
    """The file is valid by the schema of the Compose specification; one with a misspelt key is not."""
    schema = json.loads((files("check_jsonschema") / "builtin_schemas/vendor/compose-spec.json").read_text())

    jsonschema.validate(COMPOSE, schema)
    with pytest.raises(jsonschema.ValidationError, match="volums"):
        jsonschema.validate({**COMPOSE, "services": {"limnos": {**SERVICES["limnos"], "volums": []}}}, schema)


def test_names_within_the_file_exist() -> None:
    """Services that others wait for, configs and volumes are declared, and a waited-for state can be reached."""
    for service in SERVICES.values():
        assert {each["source"] for each in service.get("configs", [])} <= set(COMPOSE["configs"])
        assert {each.partition(":")[0] for each in service.get("volumes", [])} <= set(COMPOSE["volumes"])
        for name, state in service.get("depends_on", {}).items():
            needs_check = state["condition"] == "service_healthy" and name != "limnos"  # the image has a check
            assert not needs_check or "healthcheck" in SERVICES[name]


def test_images_have_versions_and_ports_are_on_loopback() -> None:
    """Each image has a tag, ours that of the release; nothing is published beyond loopback."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    tags = {name: service["image"].rpartition("/")[2].partition(":")[2] for name, service in SERVICES.items()}

    assert {name: tag for name, tag in tags.items() if tag in {"", "latest"}} == {}
    assert {tags[name] for name in ("limnos", "setup", "notebook")} == {version}
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert published
    assert [port for port in published if not port.startswith("127.0.0.1:")] == []


def test_server_settings_are_valid_and_need_credentials(tmp_path: Path) -> None:
    """The variables and the file of the server are its settings; with the image's, users need a token."""
    file = tmp_path / "limnos.toml"
    file.write_text(SETTINGS, encoding="utf-8")

    settings = load(flags={}, file=file, environ=SERVICES["limnos"]["environment"]).settings

    assert settings.storage.allowed_endpoints == (STORE,)
    assert settings.server.hosts == ("limnos",)
    assert settings.database.url.reveal() == "postgresql://limnos:limnos@postgres/limnos"
    assert settings_of({"LIMNOS__ACCESS__AUTHENTICATION": "token"}).settings.access.authentication == "token"
    assert "LIMNOS__ACCESS__AUTHENTICATION=token" in containerfile("limnos").read_text(encoding="utf-8")


def test_notebook_image_is_built_like_the_servers() -> None:
    """Hadolint has no complaint; the notebook runs as the server's user, who may read the token."""
    text = containerfile("notebook").read_text(encoding="utf-8")
    hadolint = Path(sys.executable).with_name("hadolint")

    linted = subprocess.run([hadolint, containerfile("notebook")], check=False, capture_output=True, text=True)
    assert linted.stdout == ""
    assert "USER 10001:10001" in text
    assert "USER 10001:10001" in containerfile("limnos").read_text(encoding="utf-8")
    assert "IdentityProvider.token" not in text


@pytest.mark.integration
@pytest.mark.heavy
def test_parts_work_together(tmp_path: Path) -> None:
    """With the file's settings a server over PostgreSQL starts, the set-up makes bucket and catalog, also twice, and a
    client without keys of the store writes a table there.
    """
    with postgres_server() as postgres, objects() as store:

        def local(text: str) -> str:
            key, secret = store.keys
            return text.replace(STORE, store.uri).replace("limnos-secret", secret).replace('"limnos"', f'"{key}"')

        (tmp_path / "limnos.toml").write_text(local(SETTINGS), encoding="utf-8")
        (tmp_path / "make_bucket.py").write_text(COMPOSE["configs"]["make_bucket"]["content"], encoding="utf-8")
        node = Process(
            tmp_path / "data",
            log=tmp_path / "log",
            database=postgres.empty_database(),
            env={"LIMNOS__ACCESS__AUTHENTICATION": "token"},
            flags=("--config", str(tmp_path / "limnos.toml")),
        ).start()
        try:
            _set_up(tmp_path, node, store.uri, keys=store.keys)
            _set_up(tmp_path, node, store.uri, keys=store.keys)
            signed = {
                "header.X-Iceberg-Access-Delegation": "remote-signing",
                "py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO",
            }
            catalog = load_catalog(
                "shop", type="rest", uri=f"{node.uri}/iceberg", warehouse="shop", token=node.token, **signed
            )
            catalog.create_namespace("raw")
            rows = pa.table({"id": [1, 2, 3]})
            catalog.create_table("raw.orders", schema=rows.schema).append(rows)

            assert catalog.load_table("raw.orders").scan().to_arrow() == rows
            assert [name for name in store.names("shop/") if name.endswith(".parquet")]
        finally:
            node.stop()


def _set_up(folder: Path, node: Process, endpoint: str, *, keys: tuple[str, str]) -> None:
    """Run the commands of the service `setup` with its variables, adapted to this machine."""
    service = SERVICES["setup"]
    variables = {
        **service["environment"],
        "LIMNOS_URI": node.uri,
        "LIMNOS_TOKEN_FILE": str(node.data / "admin.token"),
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": keys[0],
        "AWS_SECRET_ACCESS_KEY": keys[1],
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    script = service["command"][0].replace("/etc/limnos/", f"{folder}/")
    done = subprocess.run([*service["entrypoint"], script], env=variables, check=False, capture_output=True, text=True)

    assert done.returncode == 0, done.stdout + done.stderr
