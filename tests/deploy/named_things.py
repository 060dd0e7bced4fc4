# SPDX-License-Identifier: Apache-2.0
"""Names in deploy/, compared with the product: settings are loaded, URLs looked up in the committed documents, commands
in the command line.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from limnos.config.loading import LoadedSettings, load

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
Json = dict[str, object]


def settings_of(environ: Mapping[str, str]) -> LoadedSettings:
    """Return the settings of a server with these variables. Raises ConfigError for an unknown one."""
    return load(flags={}, file=None, environ={name: text for name, text in environ.items() if "LIMNOS" in name})


def addresses() -> set[str]:
    """Every path of the committed documents."""
    files = (ROOT / "openapi").glob("*.json")
    return {path for file in files for path in json.loads(file.read_text(encoding="utf-8"))["paths"]}
