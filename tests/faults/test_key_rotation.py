# SPDX-License-Identifier: Apache-2.0
"""Rotation of encryption keys while nodes die and callers write: no secret is lost, and a repeated rotation puts all
secrets under the newest key.
"""

from __future__ import annotations

import base64
import os
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from limnos.model.kinds import Kind
from limnos.model.sealed_secrets import keys_of
from limnos.services.request.secret_sealing import SealingKeys
from limnos.store.activity.webhooks import SECRET_PROPERTY
from limnos.store.faults import POINTS
from tests.faults.rig import BACKENDS, FULL, Rig
from tests.nodes.wire import GRAVITINO, OWN, Wire

KEYS = f"{OWN}/storage/keys"
CATALOGS, WEBHOOKS = 3, 2
SEALED = CATALOGS + WEBHOOKS
PASSED = tuple(point for point in POINTS if point not in ("file-written", "drafted"))
"""Points that a rotation does not pass: it writes no file, and a webhook's secret leaves no change in the feed."""
KILLS = [(point, at) for point in PASSED for at in range(1, SEALED + 1)]
TRIED = KILLS if FULL else [("before-commit", CATALOGS), ("after-commit", CATALOGS + 1)]
CALLERS = 64 if FULL else 12


@pytest.fixture(scope="module", params=BACKENDS)
def rig(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """A node whose keys are in a file that the test extends, with catalogs that have secrets, and webhooks of an
    earlier release.
    """
    database = request.getfixturevalue("cluster").database() if request.param == "postgresql" else None
    directory = tmp_path_factory.mktemp(request.param)
    add_key(directory / "keys")
    env = {"LIMNOS__STORAGE__KEY_FILE": str(directory / "keys")}
    with Rig(directory, database, env=env) as running:
        for number in range(CATALOGS):
            body = {
                "name": f"c{number}",
                "type": "relational",
                "provider": "lakehouse-iceberg",
                "properties": {"token": catalog_secret(number)},
            }
            running.admin.do("POST", f"{GRAVITINO}/catalogs", body)
        ((lake,),) = running.rows(f"SELECT id FROM node WHERE kind = {int(Kind.METALAKE)} AND name = 'lake'")
        for number in range(WEBHOOKS):
            running.sql(
                "INSERT INTO webhook (id, metalake_id, user_name, user_id, url, secret, position, created_at, due_at,"
                f" leased_until, holder, attempts, stopped) VALUES ({number + 1}, {lake}, 'admin', 0,"
                f" 'http://127.0.0.1:1/', '{webhook_secret(number)}', '', 0, 0, 0, '', 0, TRUE)"
            )
        yield running


def add_key(file: Path) -> None:
    """Add a key to the file, as an operator does on every node."""
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a") as lines:
        lines.write(base64.b64encode(os.urandom(32)).decode() + "\n")


def catalog_secret(number: int) -> str:
    """Return the secret of a catalog in the tests."""
    return f"the secret of catalog {number}."


def webhook_secret(number: int) -> str:
    """Return the signing secret of a webhook in the tests."""
    return base64.b64encode(f"the secret of webhook {number}.".encode()).decode()


def check_secrets(rig: Rig) -> None:
    """Check that every secret can be read unchanged, whatever its key is."""
    request = urllib.request.Request(f"{rig.node.uri}{OWN}/metalakes/lake/export?format=json&secrets=true")
    request.add_header("authorization", f"Basic {base64.b64encode(b'admin:').decode()}")
    with urllib.request.urlopen(request) as answer:
        exported = answer.read().decode()
    assert "limnos-sealed" not in exported
    assert [number for number in range(CATALOGS) if catalog_secret(number) not in exported] == []
    keys = SealingKeys(file=rig.directory / "keys")
    keys.begin()
    stored_secrets = [str(row[0]) for row in rig.rows("SELECT secret FROM webhook ORDER BY id")]
    assert [keys.opened_text(SECRET_PROPERTY, each) for each in stored_secrets] == [
        webhook_secret(each) for each in range(WEBHOOKS)
    ]


def check_rotated(rig: Rig) -> None:
    """Check that all secrets are under the newest key, and under no other."""
    key_status = rig.admin.do("GET", KEYS).body
    assert (key_status["lacking"], key_status["plain"]) == ([], 0)
    keys = key_status["keys"]
    assert isinstance(keys, list)
    assert [(key["catalogs"], key["webhooks"], key["seals"]) for key in keys] == [
        *[(0, 0, False)] * (len(keys) - 1),
        (CATALOGS, WEBHOOKS, True),
    ]
    newest = {str(keys[-1]["id"])}
    assert [keys_of(str(row[0])) for row in rig.rows("SELECT secret FROM webhook")] == [newest] * WEBHOOKS


@pytest.mark.parametrize("point, at", TRIED)
def test_killed_rotation_can_be_continued(rig: Rig, point: str, at: int) -> None:
    """If the node is killed at any boundary of any transaction of a rotation, every secret is under an existing key,
    and a repeated rotation continues.
    """
    add_key(rig.directory / "keys")
    rig.arm(point, count=at)

    answer = rig.try_to("POST", f"{KEYS}/rotate", None)

    rig.node.wait_killed()
    assert answer is None
    rig.start()
    check_secrets(rig)
    assert rig.admin.do("POST", f"{KEYS}/rotate").body["sealed"] == SEALED - at + (point != "after-commit")
    check_rotated(rig)
    check_secrets(rig)


def test_concurrent_rotations_and_writes_lose_no_change(rig: Rig) -> None:
    """Concurrent rotations to one new key, while the properties of each catalog are altered, lose no acknowledged
    change and leave no secret under an older key.
    """
    add_key(rig.directory / "keys")

    def call(number: int) -> int:
        wire = Wire(rig.node.uri, user="admin")
        try:
            if number % 3:
                return wire.do("POST", f"{KEYS}/rotate").status
            update = {"@type": "setProperty", "property": f"p{number}", "value": "v"}
            return wire.do("PUT", f"{GRAVITINO}/catalogs/c{number % CATALOGS}", {"updates": [update]}).status
        finally:
            wire.close()

    with ThreadPoolExecutor(CALLERS) as crowd:
        assert set(crowd.map(call, range(CALLERS))) == {200}

    check_rotated(rig)
    check_secrets(rig)
    for number in range(0, CALLERS, 3):
        catalog = rig.admin.do("GET", f"{GRAVITINO}/catalogs/c{number % CATALOGS}").body["catalog"]
        assert isinstance(catalog, dict)
        assert catalog["properties"][f"p{number}"] == "v"
