"""Uses that may be lowered without a test that notices, each with its reason: `judged.toml`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.lesser.sites import Site

FILE = Path(__file__).with_name("judged.toml")


def read_judgements(sites: Iterable[Site], path: Path = FILE) -> dict[str, str]:
    """Read the reasons by the key of their use. Raises ValueError for a use that is not there, or a judgement without a reason."""
    known = {each.key for each in sites}
    found: dict[str, str] = {}
    for each in tomllib.loads(path.read_text(encoding="utf-8")).get("use", []):
        key = each["key"]
        if key not in known:
            raise ValueError(f"{path.name}: no use has the key {key!r}")
        if key in found or not each.get("reason"):
            raise ValueError(f"{path.name}: {key!r} is there twice, or without a reason")
        found[key] = each["reason"]
    return found
