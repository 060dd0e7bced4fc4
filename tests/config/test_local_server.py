# SPDX-License-Identifier: Apache-2.0
"""The file with the URL of the running server: who can read it, and that only a running server's is used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from limnos.config.local_server import ADDRESS_FILE, TOKEN_FILE, NoLocalServer, read_local_server, write_address

URL = "http://127.0.0.1:8090"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with a token."""
    file = tmp_path / TOKEN_FILE
    file.touch(mode=0o600)
    file.write_text("lim_1_secret\n")
    return tmp_path


def test_address_and_token_of_a_running_server_are_read(data: Path) -> None:
    """While the server has the file locked, its URL and the token are read. A second server does not replace it."""
    lock = write_address(data, URL)
    assert lock is not None

    assert write_address(data, "http://127.0.0.1:1") is None
    assert read_local_server(data) == (URL, "lim_1_secret")
    assert (data / ADDRESS_FILE).stat().st_mode & 0o777 == 0o600
    os.close(lock)


def test_address_of_an_ended_server_is_not_used(data: Path) -> None:
    """After the server ended, another program may have its address: the token is sent to nobody. The next server
    writes its own URL.
    """
    lock = write_address(data, f"{URL}/a/longer/one")
    assert lock is not None
    os.close(lock)

    with pytest.raises(NoLocalServer, match="no server runs with the data directory"):
        read_local_server(data)
    following = write_address(data, URL)
    assert following is not None
    assert read_local_server(data)[0] == URL
    os.close(following)


@pytest.mark.parametrize("name", [ADDRESS_FILE, TOKEN_FILE])
def test_files_that_others_can_write_are_refused(data: Path, name: str) -> None:
    """A file that other users can read or write, a link, and a missing file are refused."""
    lock = write_address(data, URL)
    assert lock is not None
    file = data / name

    file.chmod(0o620)
    with pytest.raises(NoLocalServer, match=f"{name} can be read or written by other users"):
        read_local_server(data)
    file.chmod(0o600)
    file.rename(data / "real")
    missing = "no server runs with the data directory" if name == ADDRESS_FILE else f"{name} cannot be read"
    with pytest.raises(NoLocalServer, match=missing) as absent:
        read_local_server(data)
    assert absent.value.is_absent == (name == ADDRESS_FILE)
    file.symlink_to(data / "real")
    with pytest.raises(NoLocalServer, match=f"{name} cannot be read"):
        read_local_server(data)
    os.close(lock)


def test_files_of_another_user_are_refused(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of another user in the directory are refused: that user's server would get the command's requests."""
    lock = write_address(data, URL)
    assert lock is not None
    monkeypatch.setattr(os, "geteuid", lambda: data.stat().st_uid + 1)

    with pytest.raises(NoLocalServer, match="belongs to another user"):
        read_local_server(data)
    os.close(lock)
