# SPDX-License-Identifier: Apache-2.0
"""Reads the version of a Lance table by Gravitino's own Python client, once for each line of standard input.

Usage: gravitino_reader.py URI TOKEN. Run by an interpreter that has the client; may import it and the standard library.
"""

from __future__ import annotations

import sys

from gravitino import GravitinoClient, NameIdentifier
from gravitino.auth.basic_auth_provider import BasicAuthProvider

URI, TOKEN = sys.argv[1:]
client = GravitinoClient(uri=URI, metalake_name="lake", auth_data_provider=BasicAuthProvider("admin", TOKEN))
tables = client.load_catalog("lance").as_table_catalog()
for _ in sys.stdin:
    table = tables.load_table(NameIdentifier.of("docs", "vectors"))
    print(table.properties()["lance.version"], flush=True)
