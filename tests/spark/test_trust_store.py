# SPDX-License-Identifier: Apache-2.0
"""Certificate authorities for Java: the JDK reads the written trust store."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from limnos.model.errors import BadRequest
from limnos.spark.session import config_for
from limnos.spark.trust_store import PASSWORD, authorities, java_options, store_of
from tests.authority import Authority


def test_keytool_lists_all_authorities_of_the_store(tmp_path: Path) -> None:
    """The program `keytool` lists the given authority and those of the machine."""
    authority = Authority(tmp_path)
    options = java_options(authority.file, tmp_path / "cache")
    store = options.split()[0].partition("=")[2]
    listing = subprocess.run(
        [shutil.which("keytool") or "keytool", "-list", "-v", "-keystore", store, "-storepass", PASSWORD],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )

    assert "Owner: CN=Authority of a test" in listing.stdout
    assert f"contains {len(authorities(authority.file))} entr" in listing.stdout
    assert java_options(authority.file, tmp_path / "cache") == options


def test_authority_is_added_to_those_of_the_machine(tmp_path: Path) -> None:
    """The given authority is added to those of the machine."""
    first, second = (
        set(authorities(Authority(tmp_path, name).file)) for name in ("Authority of a test", "Another authority")
    )

    assert len(first - second) == len(second - first) == 1


def test_file_without_a_certificate_is_refused(tmp_path: Path) -> None:
    """A file without a certificate is refused before Spark starts."""
    (tmp_path / "no.pem").write_text("nothing")

    with pytest.raises(BadRequest, match="not a readable PEM file"):
        java_options(tmp_path / "no.pem", tmp_path)
    assert store_of([]).startswith(b"\xfe\xed\xfe\xed")


def test_callers_java_options_are_retained() -> None:
    """The caller's Java options come after the trust store's."""
    key = "spark.driver.extraJavaOptions"

    assert config_for("https://h", java_options="-Da", config={key: "-Db"})[key] == "-Da -Db"
    assert key not in config_for("https://h")
