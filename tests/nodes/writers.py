# SPDX-License-Identifier: Apache-2.0
"""A client that writes continuously while others test: commits, creates and drops in the same catalog.

Run as `python -m tests.nodes.writers URI TOKEN LABEL COUNT_FILE`. It exits with an error after a wrong answer.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from tests.installed import read_absent_addresses
from tests.nodes.wire import PREFIX, Wire, namespace_body, namespace_path, properties_body, table_body, table_path

PAUSE_S = 0.002
TURNS_MAX = 200_000
TABLES = 200
"""Number of tables that are created and dropped, alternately."""
FINE = (409, 503)
"""Expected statuses: lost races and a busy server."""


def write(wire: Wire, label: str, turn: int) -> None:
    """Execute one turn: always a commit, sometimes a create or a drop."""
    home = ("noise", label)
    if turn == 0:
        wire.do("POST", f"{PREFIX}/namespaces", namespace_body(*home), fine=FINE)
        wire.do("POST", f"{namespace_path(*home)}/tables", table_body("busy"), fine=FINE)
    wire.do("POST", table_path(*home, "busy"), properties_body(turn=str(turn)), fine=FINE)
    if turn % 3 == 0:
        wire.do("POST", f"{namespace_path(*home)}/tables", table_body(f"t{turn // 3 % TABLES}"), fine=FINE)
    if turn % 3 == 1 and turn > TABLES:
        wire.do("DELETE", table_path(*home, f"t{(turn // 3 + TABLES // 2) % TABLES}"), fine=(404, *FINE))
    if turn % 10 == 0:
        wire.do("POST", f"{PREFIX}/namespaces", namespace_body(*home, f"n{turn // 10}"), fine=FINE)


def main(uri: str, token: str, label: str, count_file: str) -> None:
    """Write until killed, or until far more is written than any test needs. The number of writes is stored in a
    file.
    """
    read_absent_addresses()  # otherwise the first 404 interrupts the writing for a second
    wire = Wire(uri, token=token)
    count = os.open(Path(count_file), os.O_WRONLY | os.O_CREAT)
    for turn in range(TURNS_MAX):
        write(wire, label, turn)
        os.pwrite(count, str(turn).encode(), 0)
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    main(*sys.argv[1:])
