# SPDX-License-Identifier: Apache-2.0
"""Which helper answers a command: its key and its fingerprint."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from limnos.cli.common import CommonFlags
from limnos.rooms.pipelines.cli.helper import identity
from limnos.rooms.pipelines.cli.helper.identity import are_unchanged, fingerprint, helper_key

SECRET = b"k" * 32
ENVIRONMENT = {"HOME": "/home/ana", "LIMNOS_TOKEN": "t1"}


def _key(**changes: str) -> str:
    return helper_key(SECRET, environ={**ENVIRONMENT, **changes}, access=("http://s", "lake"))


@pytest.mark.parametrize("name", ["JAVA_HOME", "SPARK_CONF_DIR", "TZ", "PYTHONPATH", "LIMNOS_TOKEN", "UNKNOWN", "PATH"])
def test_other_environment_has_another_helper(name: str) -> None:
    """A variable that Java or Python may read selects another helper, also one that is not known."""
    assert _key(**{name: "other"}) != _key()


@pytest.mark.parametrize("name", ["PWD", "SHLVL", "TERM", "COLUMNS", "SSH_TTY", "LIMNOS_OUTPUT"])
def test_variables_of_a_terminal_select_no_other_helper(name: str) -> None:
    """Variables that differ between two terminals are passed with the request, and share a helper."""
    assert _key(**{name: "other"}) == _key()


def test_server_credential_and_directory_select_the_helper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Server, user, token, the token's file as it is, and the working directory select the helper."""
    file = tmp_path / "token"
    file.write_text("secret-token")
    flags = [
        CommonFlags(uri="http://a"),
        CommonFlags(uri="http://b"),
        CommonFlags(uri="http://a", user="ana"),
        CommonFlags(uri="http://a", token="secret-token"),
        CommonFlags(uri="http://a", as_user="ben"),
        CommonFlags(uri="http://a", metalake="other"),
        CommonFlags(uri="http://a", token_file=file),
    ]
    keys = [helper_key(SECRET, environ={}, access=each.access_identity({})) for each in flags]
    (tmp_path / "new").write_text("secret-tokem")
    (tmp_path / "new").rename(file)
    keys.append(helper_key(SECRET, environ={}, access=flags[-1].access_identity({})))
    monkeypatch.chdir(tmp_path)
    keys.append(helper_key(SECRET, environ={}, access=flags[0].access_identity({})))

    assert len(set(keys)) == len(flags) + 2
    assert not any("secret" in each for each in keys)
    assert keys[3] != helper_key(b"o" * 32, environ={}, access=flags[3].access_identity({}))


def test_changed_package_has_another_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An edited, added or removed file of the package, and a newly installed package, change the fingerprint."""
    package, packages = tmp_path / "limnos", tmp_path / "site-packages"
    (package / "sub").mkdir(parents=True)
    packages.mkdir()
    (package / "__init__.py").write_text("")
    (package / "sub" / "a.py").write_text("x = 1")
    monkeypatch.setattr(identity.limnos, "__file__", str(package / "__init__.py"))
    monkeypatch.setattr(identity.sys, "path", [str(packages)])
    states = [fingerprint(), fingerprint()]
    (package / "sub" / "a.py").write_text("x = 2")
    os.utime(package / "sub" / "a.py", ns=(1, 1))
    states.append(fingerprint())
    (package / "b.py").write_text("")
    states.append(fingerprint())
    (packages / "pyspark-4.1.5.dist-info").mkdir()
    states.append(fingerprint())

    assert states[0] == states[1]
    assert len(set(states)) == 4


def test_edited_module_is_noticed(tmp_path: Path) -> None:
    """The state of loaded files differs once one of them is edited, replaced or removed."""
    file = tmp_path / "m.py"
    file.write_text("x = 1")
    states = {str(file): identity._state(str(file))}
    before = are_unchanged(states)
    file.write_text("x = 22")
    edited = are_unchanged(states)
    file.unlink()

    assert (before, edited, are_unchanged(states)) == (True, False, False)
