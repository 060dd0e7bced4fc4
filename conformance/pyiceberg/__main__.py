# SPDX-License-Identifier: Apache-2.0
"""PyIceberg's own integration tests against a running server with access control on.

`python -m conformance.pyiceberg [PYTEST ARGUMENT…]`: fetches PyIceberg's source distribution, whose directory `tests`
has its suite for a REST catalog, Spark, and an object store. The catalog is ours, on a local disk; Spark is a local
session with our catalog; tests of other catalogs are left out, and counted. Prints counts by module, and each failure
that `ledger.toml` does not explain; the exit code is 1 if there is one, or if a rule explains nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from conformance.engines.archives import UV, wheels
from conformance.kit.jars import UNPACK_FILTER, cache_directory
from conformance.pyiceberg.judge import judge, lines
from conformance.pyiceberg.plugin import ENVIRONMENT
from examples.demo.server import running_server
from limnos.client import Client
from limnos.spark.jars import ensure_runtime
from limnos.spark.java import find_java

HERE = Path(__file__).parent
OUTPUT = HERE.parents[1] / "conformance-out"
SUITE = "tests/integration"


def unpack_suite(work: Path) -> Path:
    """Fetch the source distribution and unpack its tests, without its package, with a directory in place of the bucket
    of its object store. Returns the directory.
    """
    archives = cache_directory() / "pyiceberg-source"
    if not archives.is_dir():
        command = [
            str(UV),
            "tool",
            "run",
            "--quiet",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--no-binary",
            "pyiceberg",
        ]
        side = archives.with_name(f"{archives.name}.{os.getpid()}")
        subprocess.run([*command, "--require-hashes", "-d", str(side), "-r", str(HERE / "source.txt")], check=True)
        side.replace(archives)
    with tarfile.open(next(archives.glob("*.tar.gz"))) as archive:
        archive.extractall(work, **UNPACK_FILTER)
    suite = next(work.glob("pyiceberg-*"))
    (suite / "pyiceberg").rename(suite / "unused")
    files = work / "warehouse"
    files.mkdir()
    for path in suite.glob(f"{SUITE}/**/*.py"):
        text = path.read_text(encoding="utf-8")
        for place, instead in (("s3://warehouse", f"file://{files}"), ('startswith("s3://")', 'startswith("file:")')):
            text = text.replace(place, instead)
        path.write_text(text, encoding="utf-8")
    return suite


def run_suite(work: Path, arguments: list[str]) -> dict[str, tuple[str, str]]:
    """Run the suite against a new server. Returns the outcomes."""
    suite = unpack_suite(work)
    with running_server(work / "data", log=OUTPUT / "pyiceberg-server.log") as server:
        token = (work / "data" / "admin.token").read_text().strip()
        with Client(server.uri, token=token) as client:
            client.namespaces.create("main.default")
        settings = {
            "catalog": {"uri": f"{server.uri}/iceberg", "warehouse": "main", "token": token},
            "jars": [str(ensure_runtime())],
            "java_home": str(find_java(cache=cache_directory()).home),
            "outcomes": str(work / "outcomes.json"),
            "provision": str(suite / "dev" / "provision.py"),
        }
        paths = (HERE.parents[1], wheels("pyiceberg-suite", HERE / "imports.txt"), wheels("pyiceberg-core"))
        environment = {**os.environ, ENVIRONMENT: json.dumps(settings), "PYTHONPATH": os.pathsep.join(map(str, paths))}
        command = [sys.executable, "-m", "pytest", "-p", "conformance.pyiceberg.plugin", "-p", "no:cacheprovider", "-q"]
        with (OUTPUT / "pyiceberg.log").open("wb") as log:
            command += ["-W", "ignore", "--tb=short", *(arguments or [SUITE])]
            subprocess.run(command, cwd=suite, env={**environment, "TZ": "UTC"}, stdout=log, stderr=log, check=False)
    outcomes = json.loads((work / "outcomes.json").read_text(encoding="utf-8"))
    return {test: (outcome, message) for test, (outcome, message) in outcomes.items()}


def main(arguments: list[str]) -> int:
    """Run and print."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="limnos-pyiceberg-", dir="/tmp") as folder:
        outcomes = run_suite(Path(folder), arguments)
    ledger = (HERE / "ledger.toml").read_text(encoding="utf-8")
    decisions, complaints = judge(outcomes, ledger, is_whole=not arguments)
    print("\n".join([*lines(decisions), *complaints]))
    return int(bool(complaints) or any(outcome == "failed" for outcome, _ in decisions.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
