# SPDX-License-Identifier: Apache-2.0
"""A Spark application that reads the system table `nodes` in parts, once for each line of standard input.

Usage: `python -m conformance.cluster.reader URI MASTER SETTINGS`, with the settings of Spark as JSON, and the token in
`LIMNOS_TOKEN`. For each read it prints the sorted ids of the rows as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Final

from limnos.spark import session

APPLICATION: Final = "limnos-reader"
PARTS: Final = 4


def main() -> None:
    """Start Spark, and read until the end of the input."""
    uri, master, settings = sys.argv[1:]
    token = os.environ["LIMNOS_TOKEN"]
    spark = session(
        uri, token=token, master=master, app_name=APPLICATION, catalogs=(), config=json.loads(settings), lance=False
    )
    for _ in sys.stdin:
        nodes = spark.read.format("limnos.system").option("table", "nodes").option("parts", PARTS)
        rows = nodes.option("columns", "id,path").load().select("id").collect()
        print(json.dumps(sorted(row.id for row in rows)), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
