# SPDX-License-Identifier: Apache-2.0
"""Hatchling's hook: adds the documentation site to the wheel, and to wheel and sdist which commit was built, and when.

`scripts/release.py` states both by variables of the environment. Without them, as in an installation from a checkout,
there is no such file, and `/api/version` says `unknown`. A wheel that is built from an sdist keeps the sdist's file.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FILE = "limnos/build.json"


class BuildInfoHook(BuildHookInterface[Any]):
    """Adds `build.json` to what is built."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the site, and the file for the commit of `LIMNOS_COMMIT` and the time of `SOURCE_DATE_EPOCH`."""
        if version != "editable" and self.target_name == "wheel":
            site = Path(self.directory) / "documentation.zip.xz"
            command = [sys.executable, Path(self.root) / "scripts" / "build_site.py", site]
            subprocess.run(command, check=True, stdout=sys.stderr)  # noqa: S603 - a program of this project
            build_data["force_include"][str(site)] = "limnos/documentation.zip.xz"
        commit, seconds = os.environ.get("LIMNOS_COMMIT"), os.environ.get("SOURCE_DATE_EPOCH")
        if version == "editable" or not commit or not seconds or (Path(self.root) / "src" / FILE).exists():
            return
        built_at = datetime.fromtimestamp(int(seconds), UTC).isoformat()
        file = Path(self.directory) / "build.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"commit": commit, "built_at": built_at}) + "\n", encoding="utf-8")
        folder = "src/" if self.target_name == "sdist" else ""
        build_data["force_include"][str(file)] = folder + FILE

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove both files from beside the build."""
        for name in ("build.json", "documentation.zip.xz"):
            (Path(self.directory) / name).unlink(missing_ok=True)
