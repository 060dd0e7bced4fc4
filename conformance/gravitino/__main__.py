# SPDX-License-Identifier: Apache-2.0
"""`python -m conformance.gravitino`: every public method of Gravitino's official Python client, with access control on.

May import this package and the demo's server starter.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from conformance.gravitino import client
from examples.demo.server import running_server

OUTPUT = Path(__file__).parents[2] / "conformance-out"


def main() -> int:
    """Run and report. Returns 0 if every step ended as expected and every method was called."""
    with (
        tempfile.TemporaryDirectory(prefix="limnos-gravitino-") as folder,
        running_server(
            Path(folder) / "data",
            log=OUTPUT / "gravitino-server.log",
            flags=("--config", client.settings_in(Path(folder))),
        ) as server,
    ):
        script_output = client.run_script(server.uri)
    for line in (*script_output.failed, *script_output.forgotten):
        print(f"FAILED {line}")
    print(script_output.totals())
    return 1 if script_output.failed or script_output.forgotten else 0


if __name__ == "__main__":
    sys.exit(main())
