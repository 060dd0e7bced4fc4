# SPDX-License-Identifier: Apache-2.0
"""The official Gravitino Python client 1.3.1 and its virtual file system, against a server that accepts only tokens."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from conformance.gravitino.client import interpreter
from tests.integration.live import serving

SCRIPT = Path(__file__).with_name("gravitino_tokens_script.py")
Seen = dict[str, object]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """The result of every step of the script."""
    folder = tmp_path_factory.mktemp("tokens")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GRAVITINO_"))}
    with serving(folder / "data", "--allow-root", str(folder), authentication="token") as running:
        done = subprocess.run(
            [str(interpreter()), "-W", "ignore", str(SCRIPT), running.uri, running.token, f"file://{folder}/files"],
            env=environment,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    assert done.returncode == 0, done.stderr
    steps: Seen = json.loads(done.stdout)
    return steps


def test_client_authenticates_by_token(seen: Seen) -> None:
    """The client works with a token as Basic's password, and with a token as OAuth's client secret."""
    assert (seen["basic"], seen["oauth"]) == (True, True)


def test_virtual_file_system_authenticates_by_token(seen: Seen) -> None:
    """The file system writes, lists and reads files with its settings for Basic, and with those for OAuth."""
    assert seen["fileset"] == "f"
    assert seen["gvfs-basic"] == [True, "rows"]
    assert seen["gvfs-oauth"] == [True, "rows"]


def test_wrong_credentials_are_refused_with_the_reason(seen: Seen) -> None:
    """Without a token, with another user's name, or with a password that is none, the refusal says what to send."""
    for step in ("basic-of-another", "gvfs-basic-of-another"):
        assert "belongs to another user than the one named by Basic" in str(seen[step])
    assert "write credential=USER:SECRET" in str(seen["oauth-of-another"])
    assert "send a token as 'Bearer lim_…'" in str(seen["basic-without-token"])
    assert "No credential was sent" in str(seen["without-credential"])
