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
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from conformance.engines.archives import UV, wheels
from conformance.kit.jars import cache_directory
from conformance.pyiceberg.plugin import ENVIRONMENT
from examples.demo.server import running_server
from limnos.client import Client
from limnos.spark.jars import ensure_runtime
from limnos.spark.java import find_java

HERE = Path(__file__).parent
OUTPUT = HERE.parents[1] / "conformance-out"
SUITE = "tests/integration"
OUTCOMES = ("passed", "known", "failed", "skipped", "other catalog")
Outcomes = Mapping[str, tuple[str, str]]
"""By test: its outcome, and the message of a failure."""


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
        archive.extractall(work, filter="data")
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


def judge(outcomes: Outcomes, ledger: str, *, is_whole: bool) -> tuple[dict[str, tuple[str, str]], list[str]]:
    """Return the outcomes with known failures, and complaints about rules: without a reason, or, if the run is whole,
    without a failure.
    """
    rules = tomllib.loads(ledger)["difference"]
    used: Counter[str] = Counter()
    decisions = dict(outcomes)
    for test, (outcome, message) in outcomes.items():
        for rule in rules if outcome == "failed" else ():
            if re.search(rule["test"], test) and re.search(rule["message"], message):
                used[rule["name"]] += 1
                decisions[test] = ("known", rule["name"])
                break
    complaints = [f"the rule {rule['name']!r} has no reason" for rule in rules if not rule.get("reason")]
    if is_whole:
        complaints += [f"the rule {rule['name']!r} explains nothing" for rule in rules if not used[rule["name"]]]
    return decisions, complaints


def lines(outcomes: Outcomes) -> list[str]:
    """Return the table of counts by module, the known differences and the failures."""
    modules: dict[str, Counter[str]] = {}
    for test, (outcome, _) in outcomes.items():
        modules.setdefault(test.partition("::")[0], Counter())[outcome] += 1
    totals: Counter[str] = Counter()
    for counts in modules.values():
        totals += counts
    table = [f"{'':60}" + "".join(f" {outcome:>13}" for outcome in OUTCOMES)]
    for module, counts in [*sorted(modules.items()), ("all", totals)]:
        table.append(f"{module:60}" + "".join(f" {counts[outcome]:13}" for outcome in OUTCOMES))
    known = Counter(message for outcome, message in outcomes.values() if outcome == "known")
    table += ["", *(f"known: {count} × {name}" for name, count in known.most_common())]
    failures = ((test, message) for test, (outcome, message) in outcomes.items() if outcome == "failed")
    return [*table, *(f"\nFAILED {test}\n{message[:600]}" for test, message in failures)]


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
