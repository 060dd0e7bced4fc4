# SPDX-License-Identifier: Apache-2.0
"""The text with which a server starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from limnos.app.server import how_to_connect
from tests.app.test_sealing_keys import settings_of


def test_banner_has_lancedb_only_with_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text for clients has LanceDB's call if the server can work on Lance tables, else the extra to install."""
    settings = settings_of(tmp_path)
    url = "http://127.0.0.1:8090"

    complete = how_to_connect(settings, url)
    monkeypatch.setattr("limnos.app.server.find_spec", lambda _: None)
    lacking = how_to_connect(settings, url)

    assert 'lancedb.connect("db://' in complete
    assert "lancedb.connect" not in lacking
    assert "server,lance" in lacking


def test_bare_start_names_the_objects_to_create(tmp_path: Path) -> None:
    """A start that creates no objects names the commands that create those of the lines for clients."""
    settings = settings_of(tmp_path)
    bare = settings.model_copy(update={"server": settings.server.model_copy(update={"bare": True})})
    url = "http://127.0.0.1:8090"

    assert "limnos create metalake\n  lake, then limnos create catalog main" in how_to_connect(bare, url)
    assert "limnos create metalake" not in how_to_connect(settings, url)
