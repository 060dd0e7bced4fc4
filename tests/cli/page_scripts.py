# SPDX-License-Identifier: Apache-2.0
"""Pages of the documentation as shell scripts.

A block is run unless the paragraph before it contains "Example". Shell and Python blocks of a page run in order, in one
empty directory with an empty HOME, against the server that the page starts; only the port is replaced. A `text` block
directly after a Python block is what the Python prints.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

import duckdb

START_S = 40
START_FAILED = 9
"""The exit code of a script whose server does not start."""
EXTENSIONS = ("avro", "httpfs", "iceberg")


@dataclass(frozen=True)
class Block:
    """A fenced block: the paragraph before it, its language, its text."""

    before: str
    language: str
    text: str

    @property
    def is_example(self) -> bool:
        """Return whether a block is only an example that is not run."""
        return "Example" in self.before


def blocks_of(page: Path) -> list[Block]:
    """Return every fenced block of a page."""
    blocks: list[Block] = []
    before, fresh, inside = "", True, None
    for line in page.read_text(encoding="utf-8").splitlines():
        if inside is None and line.startswith("```"):
            inside = (line[3:].strip(), [])
        elif inside is not None and line.startswith("```"):
            blocks.append(Block(before, inside[0], "".join(f"{each}\n" for each in inside[1])))
            before, inside = "", None
        elif inside is not None:
            inside[1].append(line)
        elif line.strip():
            before, fresh = (line, False) if fresh else (f"{before}\n{line}", False)
        else:
            fresh = True
    return blocks


def run_page(page: Path, folder: Path, *, timeout_s: int = 300) -> subprocess.CompletedProcess[str]:
    """Run the blocks of a page in a folder, with a home in it. The result has the output of all blocks."""
    port = _free_port()
    script = folder / "script.sh"
    script.write_text(script_of(blocks_of(page), port), encoding="utf-8")
    install_duckdb_extensions(folder / "home")
    environ = {
        "HOME": str(folder / "home"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "LANG": "C.UTF-8",
        "NO_PROXY": "*",
        "LIMNOS_URI": f"http://127.0.0.1:{port}",
        "LIMNOS__SERVER__LISTEN": f"127.0.0.1:{port}",
    }
    return subprocess.run(
        ["bash", str(script)], cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=timeout_s
    )


def install_duckdb_extensions(home: Path) -> None:
    """Put the pinned extensions where DuckDB's INSTALL puts those that it downloads."""
    platform = duckdb.sql("PRAGMA platform").fetchall()[0][0]
    folder = home / ".duckdb" / "extensions" / f"v{duckdb.__version__}" / platform
    folder.mkdir(parents=True)
    for name in EXTENSIONS:
        source = files(f"duckdb_extension_{name}") / "extensions" / f"v{duckdb.__version__}"
        with as_file(source / f"{name}.duckdb_extension") as file:
            (folder / file.name).symlink_to(file)


HEAD = f"""set -eu -o pipefail
servers=""
trap 'for each in $servers; do kill $each 2>&- || true; done; wait' EXIT
serve() {{
  "$@" > server.$#.log 2>&1 &
  servers="$servers $!"
  for turn in $(seq {START_S * 10}); do grep -q '^ready ' server.$#.log && return; kill -0 $! || break; sleep 0.1; done
  cat server.$#.log; exit {START_FAILED}
}}
"""


def script_of(blocks: list[Block], port: int) -> str:
    """Return one shell script of a page's blocks. Servers run in the background; make, git, cd and pip are omitted."""
    parts = [HEAD]
    for before, block in zip([None, *blocks], blocks, strict=False):
        text = block.text.replace("8090", str(port))
        if block.is_example:
            continue
        if block.language == "python":
            parts.append(f"python -W ignore - <<'END_OF_PYTHON' | tee printed\n{text}END_OF_PYTHON\n")
        elif block.language == "text" and before is not None and before.language == "python" and not block.before:
            parts.append(f"diff printed - <<'END_OF_TEXT'\n{text}END_OF_TEXT\n")
        elif block.language == "sh":
            lines = [
                line for line in text.replace("\\\n", " ").splitlines() if not re.match(r"(make|git|cd|pip) ", line)
            ]
            parts += [f"serve {line}\n" if line.startswith("limnos server start") else f"{line}\n" for line in lines]
    return "".join(parts)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
