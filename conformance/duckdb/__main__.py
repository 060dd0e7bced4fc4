# SPDX-License-Identifier: Apache-2.0
"""DuckDB's own tests of its Iceberg extension against a running server with access control on.

`python -m conformance.duckdb --suite DIR [--reference] [TEXT…]`: DIR is a checkout of duckdb/duckdb-iceberg, which the
user supplies, in the branch of the installed release. Runs the tests that its developers run with every catalog, on
tables that Spark makes first by the suite's own statements; TEXT selects tests by a part of their path. Prints counts
by directory, and each failure that `ledger.toml` does not explain; the exit code is 1 if there is one, or if a rule
explains nothing. `--reference` runs them against Iceberg's reference server instead. Without `--suite` nothing is run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

import duckdb
from conformance.duckdb.data import ENVIRONMENT as TPCH
from conformance.duckdb.player import ENVIRONMENT
from conformance.engines.archives import wheels
from conformance.kit.jars import cache_directory, class_path
from conformance.kit.reference import reference_server
from conformance.pyiceberg.judge import judge, lines
from examples.demo.server import running_server
from limnos.spark.java import find_java

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
OUTPUT = ROOT / "conformance-out"
TESTS = "test/sql/local/catalog_test_config_setup/catalog_agnostic"
LIMIT_S = 180
EXTENSIONS = ("avro", "httpfs", "iceberg")
MORE_EXTENSIONS = ("aws", "ducklake", "tpch")
"""Extensions that only this suite needs."""
ATTACH = """
CREATE SECRET caller (TYPE iceberg, TOKEN '{token}');
ATTACH 'main' AS my_datalake (TYPE iceberg, ENDPOINT '{uri}', SECRET caller, ACCESS_DELEGATION_MODE 'none');
CREATE SCHEMA IF NOT EXISTS my_datalake.default
"""
ATTACH_REFERENCE = """
ATTACH '' AS my_datalake (TYPE iceberg, ENDPOINT '{uri}', AUTHORIZATION_TYPE 'none', ACCESS_DELEGATION_MODE 'none');
CREATE SCHEMA IF NOT EXISTS my_datalake.default
"""


def extensions() -> dict[str, str]:
    """Return the files of the extensions, by name."""
    release = Path("extensions") / f"v{duckdb.__version__}"
    more = wheels("duckdb-suite", HERE / "extensions.txt")
    homes = {name: Path(str(files(f"duckdb_extension_{name}"))) for name in EXTENSIONS}
    homes |= {name: more / f"duckdb_extension_{name}" for name in MORE_EXTENSIONS}
    return {name: str(home / release / f"{name}.duckdb_extension") for name, home in homes.items()}


@contextmanager
def catalog(work: Path, *, is_reference: bool) -> Iterator[tuple[str, str]]:
    """Run a server for the body of a `with`; yields its Iceberg address and the admin's token."""
    if is_reference:
        java = find_java(cache=cache_directory()).home / "bin" / "java"
        jars = os.pathsep.join(str(path) for path in class_path(cache_directory()))
        with reference_server(java, jars, work=work / "data", log=OUTPUT / "duckdb-server.log") as uri:
            yield uri, ""
    else:
        with running_server(work / "data", log=OUTPUT / "duckdb-server.log") as server:
            yield f"{server.uri}/iceberg", (work / "data" / "admin.token").read_text().strip()


def run_suite(checkout: Path, work: Path, options: argparse.Namespace) -> dict[str, tuple[str, str]]:
    """Run a copy of the suite against a new server. Returns the outcomes."""
    for folder in ("scripts", "test"):
        shutil.copytree(checkout / folder, work / "suite" / folder)
    suite = work / "suite"
    paths = extensions()
    with catalog(work, is_reference=options.reference) as (uri, token):
        attach = (ATTACH_REFERENCE if options.reference else ATTACH).format(uri=uri, token=token)
        settings = {"attach": attach, "extensions": paths, "suite": str(suite), "work": str(work)}
        environment = {**os.environ, "TZ": "UTC", TPCH: paths["tpch"], "PYTHONPATH": f"{suite}{os.pathsep}{ROOT}"}
        with (OUTPUT / "duckdb-data.log").open("wb") as log:
            command = [sys.executable, "-m", "conformance.duckdb.data", uri, token]
            subprocess.run(command, cwd=suite, env=environment, stdout=log, stderr=log, check=True)
        environment = {**os.environ, "TZ": "UTC", ENVIRONMENT: json.dumps(settings)}
        outcomes = {}
        for path in sorted(suite.glob(f"{TESTS}/**/*.test")):
            name = str(path.relative_to(suite / TESTS))
            if not options.text or any(text in name for text in options.text):
                folder = name.partition("/")[0] if "/" in name else "."
                outcomes[f"{folder}::{name}"] = run_test(path, environment)
    return outcomes


def run_test(path: Path, environment: dict[str, str]) -> tuple[str, str]:
    """Run one test in a process of its own. Returns its outcome, and the reason."""
    command = [sys.executable, "-m", "conformance.duckdb.player", str(path)]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return "failed", f"not done within {LIMIT_S} s"
    if done.returncode:
        return "failed", f"the process ended with {done.returncode}: {done.stderr[-500:]}"
    outcome, reason = json.loads(done.stdout.splitlines()[-1])
    return outcome, reason


def main(arguments: list[str]) -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(prog="conformance/run duckdb", description=__doc__)
    parser.add_argument("--suite", type=Path)
    parser.add_argument("--reference", action="store_true")
    parser.add_argument("text", nargs="*")
    options = parser.parse_args(arguments)
    if options.suite is None:
        print("nothing was run: give --suite DIR, a checkout of duckdb/duckdb-iceberg")
        return 0
    OUTPUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="limnos-duckdb-", dir="/tmp") as folder:
        outcomes = run_suite(options.suite.resolve(), Path(folder), options)
    (OUTPUT / "duckdb.json").write_text(json.dumps(outcomes, indent=1), encoding="utf-8")
    ledger = (HERE / "ledger.toml").read_text(encoding="utf-8")
    is_whole = not options.text and not options.reference
    decisions, complaints = judge(outcomes, ledger, is_whole=is_whole)
    print("\n".join([*lines(decisions), *complaints]))
    return int(bool(complaints) or any(outcome == "failed" for outcome, _ in decisions.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
