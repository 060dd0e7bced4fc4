# SPDX-License-Identifier: Apache-2.0
"""The build that answers: its release, the commit and time of the build, and the installed extras.

Must not know requests or settings.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Final

import msgspec

import limnos
from limnos.model.extras import MODULE_EXTRAS

UNKNOWN: Final = "unknown"
_FILE: Final = Path(limnos.__file__).with_name("build.json")


class BuildInfo(msgspec.Struct, frozen=True):
    """The commit of a build, and its time as ISO 8601, as `scripts/release.py` writes them."""

    commit: str = UNKNOWN
    built_at: str = UNKNOWN


def read_build_info(file: Path = _FILE) -> BuildInfo:
    """Read the file that a release has. A checkout, and a wheel that was built by other means, have none."""
    return msgspec.json.decode(file.read_bytes(), type=BuildInfo) if file.is_file() else BuildInfo()


def installed_extras() -> list[str]:
    """Return the extras of which all libraries are installed, sorted."""
    missing = {extra for module, extra in MODULE_EXTRAS.items() if not _is_installed(module)}
    return sorted({*MODULE_EXTRAS.values()} - missing)


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # its package is missing, too
        return False
