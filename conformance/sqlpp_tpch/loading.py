# SPDX-License-Identifier: Apache-2.0
"""TPC-H's tables declared and loaded by statements over HTTP, from the `.tbl` files of the generator.

Job: generate, declare, load, count. May start `tpchgen-cli`; it must not know how a server loads.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.sqlpp_tpch.tables import TYPES
from limnos.rooms.sqlpp.language.jobs import DatasetRef

if TYPE_CHECKING:
    from tests.rooms.sqlpp.engine.live_engine import EngineDataverse

STATEMENT_S = 3600
SETTINGS = {
    "LIMNOS__SQLPP__TIMEOUT_S": str(STATEMENT_S),
    "LIMNOS__ENGINE__IDLE_S": "5",  # its memory is needed for the queries
}


def generated_text(directory: Path, *, scale: float) -> Path:
    """Return `.tbl` files of all tables; existing ones are kept."""
    output_folder = directory / f"scale-{scale:g}-tbl"
    if not (output_folder / "lineitem.tbl").exists():
        command = [
            str(Path(sys.executable).parent / "tpchgen-cli"),
            "tbl",
            "-s",
            f"{scale:g}",
            "--output-dir",
            str(output_folder),
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return output_folder


def fields_of(name: str, *, dates: str) -> str:
    """Return the fields of a table, with dates of the given type."""
    return TYPES[name][0].replace(": date", f": {dates}")


def loaded(asking: EngineDataverse, *, files: Path, dates: str) -> dict[str, float]:
    """Declare and load all tables. Returns the seconds of each LOAD; raises AssertionError for a wrong count."""
    dataverse = ".".join(asking.dataverse)
    answered(asking, f"CREATE DATAVERSE {dataverse};")
    times = {}
    for name, (_, keys) in TYPES.items():
        fields, key = fields_of(name, dates=dates), ", ".join(keys)
        file = files / f"{name}.tbl"
        answered(
            asking,
            f"USE {dataverse}; CREATE TYPE {name}_type AS CLOSED {{ {fields} }}; "
            f"CREATE DATASET {name}({name}_type) PRIMARY KEY {key};",
        )
        began = time.monotonic()
        answered(
            asking,
            f"USE {dataverse}; LOAD DATASET {name} USING localfs "
            f'((`path`="{file.as_uri().replace("file://", "localhost://")}"),(`format`="delimited-text"),(`delimiter`="|"));',
        )
        times[name] = time.monotonic() - began
        asking.refs[name] = DatasetRef(
            path=("main", *asking.dataverse, name), type=f"closed {{ {fields} }}", key=tuple((key,) for key in keys)
        )
        counts = answered(asking, f"USE {dataverse}; SELECT VALUE count(*) FROM {name};")
        with file.open("rb") as lines:
            expected = sum(1 for _ in lines)
        assert counts == [expected], f"{name}: {counts} objects of {expected} lines"
        print(f"loaded {name}: {expected:,} objects in {times[name]:.1f} s", flush=True)
    return times


def answered(asking: EngineDataverse, text: str) -> list[Any]:
    """Return the results of statements that are sent to the query service."""
    request = urllib.request.Request(
        f"{asking.server.uri}/query/service",
        data=json.dumps({"statement": text, "timeout": f"{STATEMENT_S}s"}).encode(),
        headers={"Authorization": f"Bearer {asking.server.token}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=STATEMENT_S) as answer:
            response = json.loads(answer.read())
    except urllib.error.HTTPError as error:
        raise AssertionError(f"{text[:120]}: {error.read().decode()[:500]}") from None
    assert response["status"] == "success", f"{text[:120]}: {response.get('errors')}"
    results: list[Any] = response.get("results", [])
    return results
