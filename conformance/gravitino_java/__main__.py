# SPDX-License-Identifier: Apache-2.0
"""`python -m conformance.gravitino_java`: Gravitino's Java client on its main calls, with access control on.

May import this package and the demo's server starter.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from conformance.gravitino_java.java_client import RELEASE, aged, run_script
from examples.demo.server import running_server

OUTPUT = Path(__file__).parents[2] / "conformance-out"


SIMPLE = ("--authentication", "simple")


def main() -> int:
    """Run and report; returns 0 if every step ended as expected and every method was called."""
    with tempfile.TemporaryDirectory(prefix="limnos-gravitino-java-") as folder:
        data = Path(folder) / "data"
        with running_server(data, log=OUTPUT / "gravitino-java-server.log", flags=SIMPLE) as server:
            script_output = run_script(server.uri, (data / "admin.token").read_text().strip())
    for line in (*script_output.failed, *script_output.forgotten):
        print(f"FAILED {line}")
    for step, age in aged(script_output).items():
        print(f"older than the wire: {step}: {age}")
    print(f"Java client {RELEASE}\n{script_output.totals()}")
    return 1 if script_output.failed or script_output.forgotten else 0


if __name__ == "__main__":
    sys.exit(main())
