# SPDX-License-Identifier: Apache-2.0
"""`python -m conformance.lance_spark [--rows 100000] [--bundles]`: a Spark job writes embeddings of real text, LanceDB
searches them, and each client is refused without privileges.

Job: start a server; write sentences of installed libraries' documentation with their TF-IDF vectors into
`lance.ml.text.docs` on Spark's executors; build indexes at the server; compare LanceDB's results with those of brute
force; then try each way of access without the right, with a part of it, and with all of it. With `--bundles` test
Lance's own connectors for Spark from Maven Central instead (`bundles`). Returns 1 if the recall is below its target, or
if a way of access or a connector does not behave as expected.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from examples.demo.server import running_server
from limnos.client import Client

RECALL_MIN = 0.9


def embeddings(uri: str, *, token: str, rows: int, folder: Path) -> list[str]:
    """Write, search and test access; returns the problems."""
    from conformance.lance_spark.access_paths import knock
    from conformance.lance_spark.embeddings import NEAREST, QUERIES, fill, index, recall
    from limnos.spark import session

    spark = session(uri, token=token, app_name="lance-spark")
    try:
        with Client(uri, token=token, timeout_s=300.0) as admin:
            began = time.perf_counter()
            written = fill(spark, admin, rows=rows, folder=folder)
            print(f"{written:,} rows written by Spark in {time.perf_counter() - began:.0f} s", flush=True)
            index(admin)
            shares_by_mode = recall(admin)
            for mode, share in shares_by_mode.items():
                print(f"recall at {NEAREST}, {QUERIES} queries by LanceDB ({mode}): {share:.3f}", flush=True)
            wrong = knock(uri, admin)
    finally:
        spark.stop()
    wrong += [] if written == rows else ["rows"]
    return wrong + [f"recall ({mode})" for mode, share in shares_by_mode.items() if share < RECALL_MIN]


def main(arguments: list[str]) -> int:
    """Run and report."""
    parser = argparse.ArgumentParser(prog="python -m conformance.lance_spark", description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--bundles", action="store_true", help="Lance's own connectors for Spark in place of ours")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="limnos-lance-", dir="/tmp") as name:
        folder = Path(name)
        with running_server(folder / "data", log=folder / "server.log", flags=("--authentication", "simple")) as server:
            token = (folder / "data" / "admin.token").read_text().strip()
            if options.bundles:
                from conformance.lance_spark.bundles import connectors

                wrong = connectors(server.uri, token=token)
            else:
                wrong = embeddings(server.uri, token=token, rows=options.rows, folder=folder)
    print(f"not as it should be: {', '.join(wrong) or 'nothing'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
