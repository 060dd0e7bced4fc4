# SPDX-License-Identifier: Apache-2.0
"""`python -m conformance.jdbc --clients DIR`: AsterixDB's JDBC driver against a query service, with access control on.

DIR is a checkout of apache/asterixdb-clients, which the user supplies. Prints a session of the driver and the outcome
of its own tests. Without `--clients` nothing is run. May import this package and the demo's server starter.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Final

from conformance.jdbc.driver import CompiledDriver
from examples.demo.server import running_server

OUTPUT: Final = Path(__file__).parents[2] / "conformance-out"
EXPECTED: Final = {
    "JdbcConnectionTester.testGetConnectionDirect": "connects without a user",
    "JdbcMetadataTester.testGetCrossReference": "Metadata does not show the foreign keys of views",
    "JdbcMetadataTester.testGetExportedKeys": "Metadata does not show the foreign keys of views",
    "JdbcMetadataTester.testGetImportedKeys": "Metadata does not show the foreign keys of views",
    "JdbcMetadataTester.testGetColumns": "Metadata has fewer datasets than AsterixDB's",
    "JdbcMetadataTester.testGetPrimaryKeys": "Metadata has fewer datasets than AsterixDB's",
    "JdbcMetadataTester.testGetTables": "Metadata has fewer datasets than AsterixDB's",
}
"""The driver's tests that fail, with the reason."""


def main(arguments: list[str]) -> int:
    """Run and report; returns 0 if only tests with an expected failure failed."""
    parser = argparse.ArgumentParser(prog="python -m conformance.jdbc", description=__doc__)
    parser.add_argument("--clients", type=Path, help="a checkout of apache/asterixdb-clients")
    clients = parser.parse_args(arguments).clients
    if clients is None:
        print("nothing was run: give --clients DIR, a checkout of apache/asterixdb-clients")
        return 0
    with tempfile.TemporaryDirectory(prefix="limnos-jdbc-") as folder:
        driver = CompiledDriver(clients, Path(folder))
        with running_server(Path(folder) / "data", log=OUTPUT / "jdbc-server.log") as server:
            address = server.uri.partition("//")[2]
            session = driver.session(address, "admin", "-")
            tests = driver.tests(address, "admin", "-")
    print("\n".join(session))
    failed = [test for test in tests if test.failure]
    for test in failed:
        print(f"{'expected' if test.name in EXPECTED else 'FAILED'}  {test.name}: {test.failure[:200]}")
    print(f"{len(tests) - len(failed)} of {len(tests)} tests of the driver pass")
    return 1 if any(test.name not in EXPECTED for test in failed) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
