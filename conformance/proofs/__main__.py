"""`python -m conformance.proofs [PYTEST ARGUMENT…]`: what continuous integration samples, run whole.

May import the standard library only; the tests are `tests/nodes`, `tests/faults` and `tests/freshness`. Takes about half
an hour on two cores.
"""

from __future__ import annotations

import os
import subprocess
import sys

WHOLE = {"LIMNOS_TEST_ROUNDS": "1000", "LIMNOS_TEST_FAULTS": "all", "LIMNOS_FRESHNESS_STEPS": "1200"}
SUITES = ("tests/nodes", "tests/faults", "tests/freshness")


def main(arguments: list[str]) -> int:
    """Run the suites with the samples switched off; returns pytest's exit code."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", *SUITES, *arguments]
    return subprocess.run(command, env={**os.environ, **WHOLE}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
