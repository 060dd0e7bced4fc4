"""What the runner of other engines makes of archives and answers; the engines themselves run in `make conformance`."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from conformance.engines.archives import HERE, TRINO, Tarball, unpack
from conformance.engines.checks import Checks, as_json, as_text
from conformance.engines.page import block
from conformance.kit.jars import parse_lock

JARS = {
    "t-1/lib/a.jar": b"a",
    "t-1/plugin/other/b.jar": b"b",
    "t-1/plugin/other/c.jar": b"c",
    "t-1/plugin/iceberg/i.jar": b"i",
}
LINKS = {"t-1/plugin/iceberg/a.jar": "t-1/lib/a.jar", "t-1/plugin/iceberg/b.jar": "t-1/plugin/other/b.jar"}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An archive in which plugins share jars by links, one of them to a jar that comes later."""
    path = tmp_path / "t-1.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        for name, target in LINKS.items():
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.LNKTYPE, target
            tar.addfile(link)
        for name, data in JARS.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def test_only_what_is_wanted_is_unpacked(archive: Path, tmp_path: Path) -> None:
    """Wanted folders are whole, with the jars they share with unwanted ones; of those nothing is left, not even a directory."""
    unpack(archive, tmp_path / "out", wanted=("lib/", "plugin/iceberg/"))

    found = {str(path.relative_to(tmp_path / "out")): path.read_bytes() for path in (tmp_path / "out").rglob("*.jar")}
    assert found == {
        "t-1/lib/a.jar": b"a", "t-1/plugin/iceberg/a.jar": b"a", "t-1/plugin/iceberg/b.jar": b"b",
        "t-1/plugin/iceberg/i.jar": b"i",
    }  # fmt: skip
    assert [path.name for path in (tmp_path / "out" / "t-1" / "plugin").iterdir()] == ["iceberg"]


def test_a_server_archive_is_no_jar() -> None:
    """An archive of another kind is looked for under its own name in Maven's layout."""
    assert isinstance(TRINO, Tarball)
    assert TRINO.relative_path == "io/trino/trino-server/476/trino-server-476.tar.gz"


def test_everything_is_pinned() -> None:
    """Each jar and each wheel has a hash."""
    jars = parse_lock((HERE / "flink.lock").read_text(encoding="utf-8"))
    wheels = [HERE / name for name in ("jdk25.txt", "chdb.txt")]

    assert {len(each.sha256) for each in jars} == {64}
    assert any(each.name == "iceberg-flink-runtime-1.20" and each.version == "1.11.0" for each in jars)
    for file in wheels:
        text = file.read_text(encoding="utf-8").replace("\\\n", " ")
        pins = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
        assert pins
        assert all("--hash=sha256:" in line for line in pins)


def test_what_is_raised_is_an_answer() -> None:
    """A check passes on the answer it expects; what is raised fails it with the words, or is what a refusal is judged by."""

    def fail() -> object:
        raise RuntimeError("needs SELECT_TABLE")

    checks = Checks("engine 1")
    checks.expect("right", lambda: [1], [1])
    checks.expect("wrong", lambda: [2], [1])
    checks.expect("broken", fail, [1])
    checks.expect_refusal("refused", fail, "SELECT_TABLE")
    checks.expect_refusal("refused otherwise", fail, "MODIFY_TABLE")
    checks.expect_refusal("let through", lambda: "SELECT_TABLE", "SELECT_TABLE")

    assert [check.passed for check in checks.made] == [True, False, False, True, False, False]
    assert "FAILED engine 1: broken\n       RuntimeError: needs SELECT_TABLE" in as_text(checks.made)
    assert [each["name"] for each in json.loads(as_json(checks.made))][:2] == ["right", "wrong"]


@pytest.mark.parametrize("engine", ["Trino", "Flink", "DuckDB", "chDB"])
def test_the_page_is_what_is_run(engine: str) -> None:
    """Each engine's settings come from docs/engines.md, with the address, the token and the catalog that are meant."""
    code = block(engine, uri="http://h:1/iceberg", token="secret-1", catalog="other")

    assert "http://h:1/iceberg" in code
    assert code.count("secret-1") == 1
    assert "8090" not in code
    assert "other" in code
    assert "main" not in code


def test_an_engine_that_the_page_leaves_out() -> None:
    """Settings that are not told are no settings."""
    with pytest.raises(LookupError, match="no settings for Impala"):
        block("Impala", uri="http://h", token="t")
