# SPDX-License-Identifier: Apache-2.0
"""`conformance/run flaky [--times N] [--busy N] [--sampled] [TEST…]`: repeats tests on a busy machine.

A test that fails in some runs only has a bug, or the product has. Each run is another process with another seed of
Hypothesis. Prints the tests that failed, in how many runs, and the last lines of their output. Exit code 1 if one
failed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT: Final = Path(__file__).parents[2]
TOLD_LINES: Final = 5
_SPIN: Final = "while True: pass"
_SOME_FAILED: Final = 1
"""pytest's exit code when tests failed. Codes other than this and 0 are no test results."""


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Run a number of processes that compute continuously."""
    spinning = [subprocess.Popen([sys.executable, "-c", _SPIN]) for _ in range(count)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def failures(report: Path) -> dict[str, str]:
    """Read a JUnit report: the tests that failed or could not be set up, each with the end of its output."""
    outputs = {}
    for case in ET.parse(report).iter("testcase"):
        problems = [child for child in case if child.tag in ("failure", "error")]
        if problems:
            lines = (problems[0].text or problems[0].get("message") or "").strip().splitlines()
            outputs[f"{case.get('classname')}::{case.get('name')}"] = "\n".join(lines[-TOLD_LINES:])
    return outputs


def run(words: Sequence[str], *, seed: int, folder: Path) -> dict[str, str]:
    """Run the tests once. Raises SystemExit if pytest itself could not run."""
    report = folder / f"{seed}.xml"
    command = [sys.executable, "-m", "pytest", "-q", "--hypothesis-seed", str(seed), f"--junit-xml={report}", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode not in (0, _SOME_FAILED):
        raise SystemExit(f"pytest ended with code {done.returncode}:\n{(done.stdout + done.stderr)[-2000:]}")
    return failures(report)


def main(words: Sequence[str]) -> int:
    """Run, count and print."""
    parser = argparse.ArgumentParser(prog="conformance/run flaky", description=__doc__)
    parser.add_argument("tests", nargs="*", metavar="TEST", help="files, folders or tests; all, if none is given")
    parser.add_argument("--times", type=int, default=8, help="how often")
    parser.add_argument("--busy", type=int, default=2, help="processes that keep the machine busy")
    parser.add_argument("--workers", type=int, default=2, help="processes that share the tests; 0 for this one alone")
    parser.add_argument("--marked", default="not integration and not spark", help="as pytest's -m")
    parser.add_argument("--sampled", action="store_true", help="the sample that `make test` runs")
    options = parser.parse_args(words)
    processes = ["-n", str(options.workers), "--dist", "loadgroup"] if options.workers else ["-p", "no:xdist"]
    shared = [*processes, "-m", options.marked, *(["--sampled"] if options.sampled else [])]
    counts: dict[str, int] = defaultdict(int)
    outputs: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="limnos-flaky-") as folder, busy(options.busy):
        for seed in range(options.times):
            failed = run([*shared, *options.tests], seed=seed, folder=Path(folder))
            print(f"run {seed + 1} of {options.times}: {len(failed)} failed", flush=True)
            for name, text in failed.items():
                counts[name] += 1
                outputs[name] = text
    for name, count in sorted(counts.items(), key=lambda each: -each[1]):
        print(f"{count} of {options.times}: {name}\n{outputs[name]}\n")
    return 1 if counts else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
