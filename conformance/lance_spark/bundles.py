# SPDX-License-Identifier: Apache-2.0
"""Lance's own connectors for Spark, from Maven Central, against the server: namespaces, tables, rows, and a refusal.

May import the archive finder of `limnos.spark` and a client. The job runs in a PySpark of the connector's time, in its
own environment (`bundle_job`). The required steps are listed for each connector; the outcome of others is printed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from limnos.client import Client
from limnos.spark.jars import Artifact, cache_directory, ensure

PYSPARK = "3.5.7"
UV = Path(sys.executable).with_name("uv")
JOB = Path(__file__).with_name("bundle_job.py")
OLD = Artifact(
    group="com.lancedb",
    name="lance-spark-bundle-3.5_2.12",
    version="0.0.14",
    sha256="ea928d5726b0d4bcbb9ed9f6cda13f8b83ef3c0d47c507c682baea9f0ecd3ad4",
    size_bytes=266_265_565,
)


@dataclass(frozen=True, slots=True)
class Connector:
    """A connector: the class of its catalog, its Maven coordinates, and the namespace that it uses."""

    name: str
    catalog: str
    space: str
    settings: dict[str, str] = field(default_factory=dict)


def known() -> tuple[Connector, ...]:
    """The available connectors: the last bundle of the first group, and the newest that its successor has published."""
    return (
        Connector(
            "com.lancedb:lance-spark-bundle-3.5_2.12:0.0.14",
            "com.lancedb.lance.spark.LanceNamespaceSparkCatalog",
            "lance.first",
            {"spark.jars": str(ensure(OLD))},
        ),
        Connector(
            "org.lance:lance-spark-3.5_2.12:0.4.0",
            "org.lance.spark.LanceNamespaceSparkCatalog",
            "lance.second",
            {
                "spark.jars.packages": "org.lance:lance-spark-3.5_2.12:0.4.0",
                "spark.jars.ivy": str(cache_directory() / "ivy"),
            },
        ),
    )


def interpreter() -> Path:
    """Return a Python with the PySpark of these connectors, created once."""
    home = cache_directory() / f"pyspark-{PYSPARK}"
    python, ready = home / "bin" / "python", home / "ready"
    if not ready.exists():
        subprocess.run([UV, "venv", "--quiet", "--clear", "--python", sys.executable, str(home)], check=True)
        subprocess.run(
            [UV, "pip", "install", "--quiet", "--python", str(python), f"pyspark=={PYSPARK}", "setuptools"], check=True
        )
        ready.touch()
    return python


def steps_of(connector: Connector, uri: str, *, token: str) -> dict[str, dict[str, object]]:
    """Run the job, and return the outcome of each step."""
    with tempfile.TemporaryDirectory(prefix="limnos-bundle-", dir="/tmp") as folder:
        command = [
            str(interpreter()),
            str(JOB),
            connector.catalog,
            uri,
            token,
            json.dumps(connector.settings),
            connector.space,
        ]
        environment = {
            key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYTHON", "PYSPARK"))
        }
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    outcomes = [json.loads(line[5:]) for line in done.stdout.splitlines() if line.startswith("STEP ")]
    if not outcomes:
        print(done.stderr[-3000:])
    return {each["step"]: each for each in outcomes}


def connectors(uri: str, *, token: str) -> list[str]:
    """Run each connector with all rights, then with none; print the outcomes, and return the problems."""
    wrong: list[str] = []
    with Client(uri, token=token) as admin:
        admin.users.add("eve")
        stranger = admin.tokens.create(user="eve", name="bundles").token
        for each in known():
            print(f"{each.name}:", flush=True)
            steps = steps_of(each, uri, token=token)
            for step, outcome in steps.items():
                print(f"  {step:32} {str(outcome.get('error') or outcome.get('found'))[:300]}", flush=True)
            wrong += [f"{each.name}: {step}" for step in expected(admin, each, steps=steps)]
            refused = steps_of(each, uri, token=stranger)
            errors = [str(outcome.get("error", "")) for step, outcome in refused.items() if step.startswith("SELECT")]
            print(f"  without rights: {errors[0][:300] if errors else 'nothing'}", flush=True)
            wrong += [] if errors and all(errors) else [f"{each.name}: a stranger is not refused"]
    return wrong


def expected(admin: Client, connector: Connector, *, steps: dict[str, dict[str, object]]) -> list[str]:
    """Return the unmet requirements: Spark reads the written rows, and the server lists the tables."""
    rows = [[2, "b"], [3, "c"]]
    wrong = [
        f"rows of {name}"
        for name in ("old.{s}.t", "old.{s}.deep.t")
        if steps.get(f"SELECT FROM {name}", {}).get("found") != rows
    ]
    wrong += [] if steps.get("SHOW TABLES IN old.{s}", {}).get("found") == ["t"] else ["SHOW TABLES"]
    if admin.lance.dataset(f"{connector.space}.t").count_rows() != 3:
        wrong.append("rows at the server")
    return wrong
