# SPDX-License-Identifier: Apache-2.0
"""A helper process whose commands are those of the tests: `python program.py KEY IDLE_S`.

Each command does to its process what a real command, or the system, may do.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from limnos.rooms.pipelines.cli.helper import process


def execute(tokens: Sequence[str]) -> int:
    """Run a command of the tests. Returns its exit code."""
    word, *rest = tokens
    if word == "say":
        print(f"out: {' '.join(rest)}")
        os.write(1, b"raw\n")
        subprocess.run([sys.executable, "-c", "print('from a process', flush=True)"], check=True)
        print("err: ä", file=sys.stderr)
        return 7
    if word == "state":
        mask = os.umask(0)
        print(os.environ.get("COLOUR"), Path.cwd(), f"{mask:o}", sys.argv, sys.stdout.isatty(), os.environ.get("HOME"))
    elif word == "module":
        sys.path.insert(0, str(Path.cwd()))
        print(importlib.import_module(rest[0]).VALUE)
    elif word == "crash":
        print("half of an ans", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    elif word == "raise":
        raise RuntimeError("unexpected")
    elif word == "flood":
        while True:
            print("x" * (1 << 20))
            if os.fstat(1).st_size > 70 << 20:
                return 0
    elif word == "sleep":
        Path(rest[0]).write_text(str(os.getpid()))
        return _sleep()
    return 0


def _sleep() -> int:
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(process.serve(sys.argv[1:], execute))
