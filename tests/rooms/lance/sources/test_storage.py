# SPDX-License-Identifier: Apache-2.0
"""Folders of a directory of Lance tables without the library that reads them."""

from __future__ import annotations

import sys

import pytest

from limnos.model.errors import UnsupportedOperation
from limnos.rooms.lance.sources.storage import DirectoryStorage


def test_missing_library_error_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the library that reads folders, the error names the missing package, not credentials."""
    monkeypatch.setitem(sys.modules, "fsspec", None)

    with pytest.raises(
        UnsupportedOperation, match=r"^s3://b/p needs a package that is not installed here: .*\[server\]"
    ):
        DirectoryStorage("s3://b/p", {}).folders()
