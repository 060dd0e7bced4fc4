# SPDX-License-Identifier: Apache-2.0
"""The files that a confined process can still open. The test uses a separate process, because confinement cannot be
undone.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from limnos.confinement.file_rules import FileRules
from limnos.confinement.landlock import confine, version

SCRIPT = """
import os, sys
from limnos.confinement.file_rules import SYSTEM, FileRules
from limnos.confinement.landlock import confine
home, server = sys.argv[1:]
done = confine(FileRules(readable=(*SYSTEM, sys.prefix, *sys.path, home), writable=(home + "/data/warehouse", home + "/scratch"), closed=(home + "/data",)))
def attempt(what):
    try:
        what()
    except OSError as error:
        return type(error).__name__
    return "can"
print(done)
print("secret", attempt(lambda: open(home + "/data/admin.token")))
print("list", attempt(lambda: os.listdir(home + "/data")))
print("beside", attempt(lambda: open(home + "/beside.txt")))
print("write beside", attempt(lambda: open(home + "/beside.txt", "w")))
print("rows", attempt(lambda: open(home + "/data/warehouse/t.parquet", "w")))
print("scratch", attempt(lambda: os.mkdir(home + "/scratch/x")))
print("environment", attempt(lambda: open(f"/proc/{server}/environ").read()))
print("child", os.system(f"cat {home}/data/admin.token 2>/dev/null") != 0)
"""


def test_confined_process_can_open_only_allowed_files(tmp_path: Path) -> None:
    """Warehouse and scratch can be written, files beside the data directory read, its secrets and the server's
    environment not.
    """
    for name in ("data/warehouse", "scratch"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "data" / "admin.token").write_text("secret")
    (tmp_path / "beside.txt").write_text("open")
    server = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)

    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path), str(server.pid)], capture_output=True, text=True, check=False
    )
    server.communicate(b"\n")

    confinement, *outcomes = done.stdout.splitlines()
    assert confinement == str(version() > 0), done.stderr
    assert version() == 0 or outcomes == [
        "secret PermissionError",
        "list PermissionError",
        "beside can",
        "write beside PermissionError",
        "rows can",
        "scratch can",
        "environment PermissionError",
        "child True",
    ], done.stderr


def test_confine_returns_false_without_landlock(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a kernel without Landlock, `confine` returns False."""
    monkeypatch.setattr("limnos.confinement.landlock.version", lambda: 0)

    assert confine(FileRules(readable=("/",))) is False
