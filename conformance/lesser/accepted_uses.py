# SPDX-License-Identifier: Apache-2.0
"""Uses that may be lowered although no test notices, each with its reason: `accepted_uses.toml`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.lesser.sites import Site

FILE = Path(__file__).with_name("accepted_uses.toml")


class Judgement(NamedTuple):
    """Why no test notices: the reason why that is acceptable, or what a test lacks."""

    reason: str
    is_open: bool


def read_judgements(sites: Iterable[Site], path: Path = FILE) -> dict[str, Judgement]:
    """Read the judgements by the key of their use. Raises ValueError for a missing use, or a judgement without a
    reason.
    """
    known = {each.key for each in sites}
    judgements: dict[str, Judgement] = {}
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    for is_open, each in ((name == "open", each) for name in ("same", "open") for each in document.get(name, ())):
        for key in each["keys"]:
            if key not in known:
                raise ValueError(f"{path.name}: no use has the key {key!r}")
            if key in judgements or not each.get("reason"):
                raise ValueError(f"{path.name}: {key!r} is there twice, or without a reason")
            judgements[key] = Judgement(each["reason"], is_open)
    return judgements
