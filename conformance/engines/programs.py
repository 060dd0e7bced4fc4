# SPDX-License-Identifier: Apache-2.0
"""Programs in Rust and Go, built here from one crate and one module, and cached between runs.

Job: the name of a program in, its path out. May import the directory of the cache. It must not know what they do.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from conformance.kit.jars import cache_directory

_HERE = Path(__file__).parent


def rust_program(name: str) -> Path:
    """Build the programs of the crate `rust`, two jobs at a time. Returns the path of one."""
    target = cache_directory() / "rust"
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target)}
    command = ["cargo", "build", "--locked", "--quiet", "--jobs", "2"]
    subprocess.run(command, cwd=_HERE / "rust", env=environment, check=True)
    return target / "debug" / name


def go_program(name: str, package: str = ".") -> Path:
    """Build a package of the module `go`. Returns the path of the program, which is called `name`."""
    target = cache_directory() / name
    command = ["go", "build", "-trimpath", "-o", str(target), package]
    subprocess.run(command, cwd=_HERE / "go", env={**os.environ, "GOFLAGS": "-mod=readonly -p=1"}, check=True)
    return target
