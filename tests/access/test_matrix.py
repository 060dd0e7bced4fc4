# SPDX-License-Identifier: Apache-2.0
"""The committed permission matrix equals the decisions of the policy."""

from __future__ import annotations

from tests.access.matrix import FILE, render


def test_matrix_is_current() -> None:
    """The committed matrix equals the policy; after a wanted change run `python -m tests.access.matrix`."""
    committed = FILE.read_text(encoding="utf-8")

    assert render() == committed
