# SPDX-License-Identifier: Apache-2.0
"""CPU time of `limnos --help`, of wrong commands and of `list`, each in a process of its own.

Imports the standard library only. `python -m bench.command_line` prints the median of a few rounds; `list` asks a
server that does not exist, so its time is that of imports and of the connection that fails.
"""

from __future__ import annotations

import os
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
from typing import Final

ROUNDS: Final = 5
COMMANDS: Final = (
    "--help",
    "list --help",
    "lst",
    "show tables",
    "list --foo",
    "grant slct",
    "grant select_table --on main.raw --to ana --foo",
    "login --foo",
    "audit --sinse 1d",
    "maintenance explain",
    "pipeline run",
    "server start --prot 80",
    "list --uri http://127.0.0.1:9",
)


def main() -> None:
    """Print the milliseconds of CPU of each command."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("LIMNOS")}
    with tempfile.TemporaryDirectory() as home:
        environ["LIMNOS_PROFILES"] = os.path.join(home, "profiles.json")  # noqa: PTH118
        for command in COMMANDS:
            times = [_cpu_s(shlex.split(command), environ) for _ in range(ROUNDS)]
            print(f"{statistics.median(times) * 1000:5.0f} ms  limnos {command}")


def _cpu_s(words: list[str], environ: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "limnos.cli.main", *words], env=environ, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
