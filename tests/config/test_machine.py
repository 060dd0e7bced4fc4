# SPDX-License-Identifier: Apache-2.0
"""The memory of the machine, or the lower limit of a container."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from limnos.config import machine


@pytest.mark.parametrize("text,limited", [("1048576\n", True), ("max\n", False), ("9223372036854771712", False)])
def test_lower_container_memory_limit_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, limited: bool
) -> None:
    """A container's memory limit counts if it is lower than the machine's memory. Otherwise the machine's memory
    counts.
    """
    (tmp_path / "limit").write_text(text)
    monkeypatch.setattr(machine, "CGROUP_LIMITS", (str(tmp_path / "none"), str(tmp_path / "limit")))
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

    assert machine.memory_bytes() == (1 << 20 if limited else whole)
