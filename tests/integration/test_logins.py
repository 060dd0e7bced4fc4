# SPDX-License-Identifier: Apache-2.0
"""Password sessions on two nodes over one store: a session of one node is valid on the other, and is ended on both."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.authority import Authority
from tests.integration.live import LIMNOS, serving

WORDS = "a few words of my own"


def limnos(file: Path, *words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command line with profiles of its own."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("LIMNOS")}
    return subprocess.run(
        [*LIMNOS, *words],
        input=typed,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**variables, "LIMNOS_PROFILES": str(file)},
    )


def test_cli_session_is_valid_and_ended_at_both_nodes(tmp_path: Path) -> None:
    """A session of one node is valid at the other. Disabling the user ends it at both, also after the user was enabled,
    and a new password ends the next one at both.
    """
    authority, pair = Authority(tmp_path), (tmp_path / "lake.pem", tmp_path / "lake.key")
    authority.give(*pair)
    flags = ("--certificate", str(pair[0]), "--key", str(pair[1]))
    (tmp_path / "two").mkdir(mode=0o700)
    ana, root = tmp_path / "ana.json", tmp_path / "root.json"
    with (
        serving(tmp_path / "data", *flags) as one,
        serving(tmp_path / "two" / "data", *flags, "--database", f"sqlite:///{one.data}/limnos.db") as two,
    ):
        believed = ("--ca-file", str(authority.file))
        admin = ("--uri", one.uri, "--token-file", str(one.data / "admin.token"), *believed)
        assert limnos(root, "user", "add", "ana", *admin).returncode == 0
        assert limnos(root, "user", "password", "ana", *admin, typed=f"{WORDS}\n").returncode == 0
        signed = limnos(ana, "login", "ana", "--uri", one.uri, *believed, typed=f"{WORDS}\n")
        assert signed.returncode == 0, signed.stderr
        token = ana.read_text().split('"token": "')[1].split('"')[0]

        def at_two() -> int:
            return limnos(root, "ls", "--uri", two.uri, "--token", token, *believed).returncode

        known, at_other = limnos(ana, "whoami"), at_two()
        limnos(root, "user", "disable", "ana", *admin)
        disabled = (limnos(ana, "ls").returncode, at_two())
        limnos(root, "user", "enable", "ana", *admin)
        enabled = at_two()
        # The server and its authority are those of the profile in use, and the new profile keeps both.
        again = limnos(ana, "login", "ana", typed=f"{WORDS}\n")
        token = ana.read_text().split('"token": "')[1].split('"')[0]
        signed_again = (again.returncode, at_two())
        limnos(root, "user", "password", "ana", *admin, typed="another few words\n")
        ended = (limnos(ana, "whoami").returncode, at_two())

    assert "ana" in known.stdout
    assert (at_other, disabled, enabled, signed_again, ended) == (0, (4, 4), 4, (0, 0), (4, 4))
