# SPDX-License-Identifier: Apache-2.0
"""`python -m conformance.proofs [PYTEST ARGUMENT…]`: complete runs of the suites that continuous integration samples.

May import the standard library only; the tests are those of `SUITES`, and then, because they share one Spark, those of
`SPARK_SUITES`. Takes about four hours on two cores.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

WHOLE = {
    "LIMNOS_TEST_ROUNDS": "1000",
    "LIMNOS_TEST_FAULTS": "all",
    "LIMNOS_FRESHNESS_STEPS": "1200",
    "LIMNOS_FEED_MUTATIONS": "10000",
    "LIMNOS_TEST_STATEMENTS": "100000",
    "LIMNOS_TEST_QUERIES": "10000",
    "LIMNOS_TEST_LOCKS": "10000",
    "LIMNOS_TEST_KEYS_S": "600",
    "LIMNOS_TEST_BODIES": "5000",
    "LIMNOS_TEST_CUTS": "100",
    "LIMNOS_TEST_READS": "10000",
    "LIMNOS_TEST_STORIES": "60",
    "LIMNOS_TEST_ALTERS": "200",
    "LIMNOS_TEST_AUDIT": "10000",
    "LIMNOS_TEST_RESTRICTIONS": "1000",
    "LIMNOS_TEST_RESTRICTED_STEPS": "10000",
    "LIMNOS_TEST_PLANS": "400",
    "LIMNOS_TEST_FAR_TABLES": "2000",
    "LIMNOS_TEST_ORPHAN_TABLES": "30",
    "LIMNOS_TEST_EXPORT": "100000",
    "LIMNOS_TEST_PLACES": "all",
    "LIMNOS_TEST_SECRETS": "all",
}
SUITES = (
    "tests/nodes",
    "tests/faults",
    "tests/freshness",
    "tests/rooms/sqlpp/language",
    "tests/rooms/sqlpp/services/locks/test_statement_locks.py",
    "tests/rooms/lance/http/test_mutations.py",
    "tests/integration/test_two_protocols.py",
    "tests/integration/test_restricted_scans.py",
    "tests/http/iceberg/test_restriction_model.py",
    "tests/http/iceberg/test_federated.py",
    "tests/rooms/gravitino/http/test_source_load.py",
    "tests/rooms/exchange/services/test_exchange.py",
    "tests/cli/test_printed_secrets.py",
    "tests/http/test_location_attacks.py",
)
SPARK_SUITES = (
    "tests/pipeline/run",
    "tests/pipeline/engine/test_modes.py",
    "tests/rooms/sqlpp/engine/test_keys.py",
    "tests/rooms/sqlpp/engine/test_kills.py",
    "tests/integration/test_two_protocols_spark.py",
    "tests/integration/test_spark_scan_plans.py",
    "tests/integration/test_orphans_oracle.py",
)


def main(arguments: list[str]) -> int:
    """Run the suites without sampling, and print their measurements; returns pytest's exit code."""
    with tempfile.TemporaryDirectory() as folder:
        figures = Path(folder) / "figures"
        code = _run(arguments, figures)
        if figures.exists():
            print(
                "seconds, with connections that went silent, a database that stood still or was killed, a disk that was"
                " full:"
            )
            for line in figures.read_text(encoding="utf-8").splitlines():
                name, seconds = json.loads(line)
                print(f"  {name.replace('_', ' '):34} {seconds:6.2f}")
    return code


def _run(arguments: list[str], figures: Path) -> int:
    together = ["-n", "2", "--dist", "loadfile", *SUITES]
    alone = ["-p", "no:xdist", "-m", "spark", *SPARK_SUITES]
    codes = [
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", *each, *arguments],
            env={**os.environ, **WHOLE, "LIMNOS_TEST_FIGURES": str(figures)},
            check=False,
        ).returncode
        for each in (together, alone)
    ]
    return max(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
