# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.harvest`: a harvest of planted Iceberg tables, by the command of pipelines: time, CPU and memory.

One server on SQLite, and a Spark of its own on two cores for each run. The first run has an empty directory: it is the
start of Spark and the commits of a run. Then all tables are registered, then nothing has changed, then one
table of a hundred has a newer metadata file and one of a thousand is gone.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from bench.operations import PREFIX
from bench.registrations import Registrations
from bench.search import Client
from bench.shipped import measure
from bench.stores import Place, running_server

if TYPE_CHECKING:
    from collections.abc import Sequence

PIPELINE = """
pipeline: harvest_NAME
catalog: main
sources:
  lake: {harvest: ROOT}
  outcomes: {register: NAME.tables, into: main}
steps:
  NAME.tables: {load: lake}
  NAME.outcomes: {load: outcomes}
"""


def pipeline(folder: Path, name: str, *, root: Path) -> str:
    """Write the file of a pipeline that harvests a directory. Returns its path."""
    file = folder / f"{name}.yaml"
    file.write_text(PIPELINE.replace("NAME", name).replace("ROOT", str(root)))
    return str(file)


def change(lake: Path) -> None:
    """Commit a metadata file to one table of a hundred, and remove one of a thousand."""
    for number, table in enumerate(sorted(lake.glob("*/*"))):
        (file,) = (table / "metadata").iterdir()
        if number % 1_000 == 1:
            shutil.rmtree(table)
        elif number % 100 == 0:
            document = json.loads(file.read_bytes())
            document["metadata-log"] = [
                {"metadata-file": f"file://{file}", "timestamp-ms": document["last-updated-ms"]}
            ]
            (file.parent / f"00001-{uuid.uuid4()}.metadata.json").write_text(json.dumps(document))


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.harvest", description=__doc__)
    parser.add_argument("--tables", type=int, default=5_000)
    return parser.parse_args(arguments)


def main() -> int:
    """Plant, harvest and print."""
    tables = options().tables
    with tempfile.TemporaryDirectory(prefix="limnos-bench-", ignore_cleanup_errors=True) as directory:
        folder = Path(directory)
        work, place = Registrations(folder, tables), Place(folder / "sqlite", None)
        lake, empty = folder / "lake", folder / "empty"
        empty.mkdir()
        with running_server(place, database_pid=None, environment=work.environment) as server:
            work.prepare(server)
            for name in ("empty", "large"):
                Client(server).ask("POST", f"{PREFIX}/namespaces", {"namespace": [name]})
            print(f"{tables:,} tables", flush=True)
            measure(server, "empty", path=pipeline(folder, "empty", root=empty))
            path = pipeline(folder, "large", root=lake)
            measure(server, "registered", path=path)
            measure(server, "unchanged", path=path)
            change(lake)
            measure(server, "1 % changed", path=path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
