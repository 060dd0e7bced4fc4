# SPDX-License-Identifier: Apache-2.0
"""Iceberg's REST compatibility kit against a real server with access control on.

Job: start a server, compile our few lines of Java, run the kit's table tests and view tests, print the score of each
and compare it with `expected_tables.txt` and `expected_views.txt`; once over SQLite, once over PostgreSQL. May import
the client, the Java and archive finders, the demo's server starter, and PostgreSQL as the benchmark starts it. Needs no
Java compiler: Eclipse's comes from the class path. `python -m conformance.kit [--store sqlite|postgres] [--far]
[NAME…]` runs all tests, or some: `tables` or `views` for all of a class, `tables#METHOD` or `views#METHOD` for one.
`--far`: through a catalog that shows another server's. `--reference`: against Iceberg's reference server, then through
a catalog that shows one; each test must have the same outcome.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.stores import STORES, Postgres
from conformance.kit.jars import cache_directory, class_path
from conformance.kit.junit import Outcome, as_json, as_text, complaints, parse_expectation, read_report
from conformance.kit.reference import reference_server
from examples.demo.server import running_server
from limnos.client import Client
from limnos.model.errors import BadRequest, LimnosError
from limnos.spark.java import find_java

VERSION = "1.11.0"
CLASSES = {"tables": "org.apache.iceberg.rest.LimnosTableTests", "views": "org.apache.iceberg.rest.LimnosViewTests"}
HERE = Path(__file__).parent
SOURCES = HERE / "src" / "test" / "java"
OUTPUT = HERE.parent.parent / "conformance-out"
CATALOG = "main"
ALLOWED = "file:/tmp"
"""Locations that the tests use; Java spells a local URL with one slash. No location of a catalog may contain the
server's own directory, so that is elsewhere.
"""

FLAGS = {
    "rck.local": "false",
    "rck.requires-namespace-create": "true",
    "rck.supports-serverside-retry": "true",
    "rck.overrides-requested-location": "false",
    "rck.supports-names-with-dot": "true",
}


@dataclass(frozen=True, slots=True)
class Kit:
    """A compiled kit: the Java to run it and its class path."""

    java: Path
    path: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and report; returns 0 if each score is the expected one, else 1."""
    parser = argparse.ArgumentParser(prog="python -m conformance.kit")
    parser.add_argument("--store", choices=STORES, action="append", help="may be repeated; default: all")
    parser.add_argument("--far", action="store_true", help="through a catalog that shows another server's")
    parser.add_argument(
        "--reference", action="store_true", help="through a catalog that shows Iceberg's reference server's"
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args(arguments)
    chosen = chosen_tests(options.names)
    with tempfile.TemporaryDirectory(prefix="limnos-kit-", dir="/tmp") as folder:
        kit = prepare(Path(folder) / "classes")
        shutil.rmtree(OUTPUT, ignore_errors=True)
        OUTPUT.mkdir(parents=True)
        if options.reference:
            return run_reference(kit, chosen, work=Path(folder))
        run = run_far if options.far else run_store
        return max([run(kit, store, chosen, work=Path(folder) / store) for store in options.store or STORES])


@contextmanager
def data_directory() -> Iterator[Path]:
    """Make a directory for a server's data, which is not in `ALLOWED`."""
    with tempfile.TemporaryDirectory(prefix="limnos-kit-", dir="/var/tmp") as folder:
        yield Path(folder) / "data"


def run_store(kit: Kit, store: str, chosen: dict[str, list[str]], *, work: Path) -> int:
    """Run the selected tests over a store and report; returns 1 if a score is not the expected one.

    Each class has its own server and database, because it expects only namespaces of its own, and leaves some behind.
    """
    with databases(store, work / "postgres") as database_flags:
        for suite, methods in chosen.items():
            flags = ("--allow-root", ALLOWED, *database_flags(suite))
            log = OUTPUT / f"server-{suite}-{store}.log"
            with data_directory() as data, running_server(data, log=log, flags=flags) as server:
                token = (data / "admin.token").read_text().strip()
                with Client(server.uri, token=token) as client:
                    client.catalogs.alter(CATALOG, updates={"allowed-locations": ALLOWED})
                log = OUTPUT / f"kit-{suite}-{store}.log"
                uri = f"{server.uri}/iceberg"
                run_tests(kit, suite, uri=uri, token=token, work=work / suite, methods=methods, log=log)
    return max(
        [
            report(suite, read_report(work / suite / "report"), store=store, partial=bool(methods))
            for suite, methods in chosen.items()
        ]
    )


def run_far(kit: Kit, store: str, chosen: dict[str, list[str]], *, work: Path) -> int:
    """Run the selected tests over a store, through catalog `far` of a second server; returns 1 if a score is not the
    expected one.
    """
    with databases(store, work / "postgres") as database_flags:
        for suite, methods in chosen.items():
            with serving_far(suite, store, work=work / suite, flags=database_flags(suite)) as (uri, token):
                log = OUTPUT / f"kit-{suite}-{store}.log"
                run_tests(kit, suite, uri=uri, token=token, work=work / suite, methods=methods, log=log, catalog="far")
    return max(
        [
            report(suite, read_report(work / suite / "report"), store=store, partial=bool(methods))
            for suite, methods in chosen.items()
        ]
    )


@contextmanager
def serving_far(suite: str, store: str, *, work: Path, flags: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Run a server, and one whose catalog `far` shows it; yields the second one's address and token."""
    near = work / "near"
    flags, log = ("--allow-root", ALLOWED, *flags), OUTPUT / f"server-{suite}-{store}.log"
    with data_directory() as away, running_server(away, log=log, flags=flags) as source:
        word = (away / "admin.token").read_text().strip()
        with Client(source.uri, token=word) as client:
            client.catalogs.alter(CATALOG, updates={"allowed-locations": ALLOWED})
        properties = {"uri": f"{source.uri}/iceberg", "warehouse": CATALOG, "token": word}
        with showing(properties, work=near, log=OUTPUT / f"near-{suite}-{store}.log") as endpoint:
            yield endpoint


def run_reference(kit: Kit, chosen: dict[str, list[str]], *, work: Path) -> int:
    """Run the selected tests against a reference server, and through a catalog that shows one; returns 1 if an outcome
    differs.
    """
    differences = []
    for suite, methods in chosen.items():
        ends = []
        for way, serving in (("straight", serving_reference), ("far", serving_far_reference)):
            place, name = work / f"{suite}-{way}", f"{suite}-reference-{way}"
            with serving(kit, name, work=place) as (uri, token, catalog):
                log = OUTPUT / f"kit-{name}.log"
                run_tests(kit, suite, uri=uri, token=token, work=place, methods=methods, log=log, catalog=catalog)
            outcomes = read_report(place / "report")
            print(f"Iceberg's REST compatibility kit {VERSION}, {suite}, reference server, {way}: {as_text(outcomes)}")
            ends.append({outcome.name: outcome.verdict for outcome in outcomes})
        straight, far = ends
        differences += [
            f"{suite}: {name} is {straight.get(name)} straight, {far.get(name)} through a catalog that shows the server"
            for name in sorted(straight.keys() | far.keys())
            if straight.get(name) != far.get(name)
        ]
    for line in differences:
        print(f"  {line}")
    return int(bool(differences))


@contextmanager
def serving_reference(kit: Kit, name: str, *, work: Path) -> Iterator[tuple[str, str, str]]:
    """Run a reference server; yields its address. It has no token and no warehouse."""
    with reference_server(kit.java, kit.path, work=work / "reference", log=OUTPUT / f"server-{name}.log") as uri:
        yield uri, "", ""


@contextmanager
def serving_far_reference(kit: Kit, name: str, *, work: Path) -> Iterator[tuple[str, str, str]]:
    """Run a reference server, and a Limnos server whose catalog `far` shows it; yields the second one's address, token
    and catalog.
    """
    with (
        serving_reference(kit, name, work=work) as (source, _, _),
        showing({"uri": source}, work=work / "near", log=OUTPUT / f"near-{name}.log") as (uri, token),
    ):
        yield uri, token, "far"


@contextmanager
def showing(properties: dict[str, str], *, work: Path, log: Path) -> Iterator[tuple[str, str]]:
    """Run a server whose catalog `far` shows another's; yields its address and its administrator's token."""
    address = properties["uri"].removeprefix("http://").partition("/")[0]
    with running_server(work, log=log, flags=("--allow-source", address)) as server:
        token = (work / "admin.token").read_text().strip()
        with Client(server.uri, token=token) as client:
            client.catalogs.create("far", provider="iceberg-rest", properties=properties)
        yield f"{server.uri}/iceberg", token


@contextmanager
def databases(store: str, folder: Path) -> Iterator[Callable[[str], tuple[str, ...]]]:
    """Run the database server of a store for the body of a `with`; yields a function that creates a database, and the
    server's flags for it.
    """
    if store == "sqlite":
        yield lambda _: ()
        return
    postgres = Postgres(folder)
    try:
        yield lambda name: ("--database", postgres.new_database(name))
    finally:
        postgres.stop()


def chosen_tests(names: Sequence[str]) -> dict[str, list[str]]:
    """Return the classes to run with their selected methods; none means all."""
    chosen: dict[str, list[str]] = {}
    for name in names or CLASSES:
        suite, _, method = name.partition("#")
        if suite not in CLASSES:
            raise BadRequest(f"There are no tests called {suite}: name {' or '.join(CLASSES)}, or one as tables#METHOD")
        chosen.setdefault(suite, []).extend([method] if method else [])
    return chosen


def prepare(classes: Path) -> Kit:
    """Fetch the archives, find a Java and compile our class."""
    cache = cache_directory()
    java = find_java(cache=cache).home / "bin" / "java"
    archives = os.pathsep.join(str(path) for path in class_path(cache))
    sources = [str(path) for path in sorted(SOURCES.rglob("*.java"))]
    compiler = [str(java), "-cp", archives, "org.eclipse.jdt.internal.compiler.batch.Main"]
    options = ["-source", "17", "-target", "17", "-proc:none", "-nowarn", "-cp", archives, "-d", str(classes)]
    subprocess.run([*compiler, *options, *sources], check=True)
    return Kit(java=java, path=os.pathsep.join((str(classes), archives)))


def run_tests(
    kit: Kit, suite: str, *, uri: str, token: str, work: Path, methods: Sequence[str], log: Path, catalog: str = CATALOG
) -> None:
    """Run the tests of a class in one Java process; its output goes to a log, its XML report to a directory of that
    name.
    """
    properties = {"uri": uri, "warehouse": catalog, "limnos.kit.base": f"file:{work}/tables", **FLAGS}
    command = [str(kit.java), "-Xmx1g", "-Dfile.encoding=UTF-8"]
    command += [f"-D{key}={value}" for key, value in properties.items()]
    command += ["-cp", kit.path, "org.junit.platform.console.ConsoleLauncher", "execute", "--disable-banner"]
    command += ["--details=tree", "--details-theme=ascii", "--disable-ansi-colors"]
    command += ["--config", "rck.local=false", "--reports-dir", str(work / "report")]
    tests = CLASSES[suite]
    command += [f"--select-method={tests}#{method}" for method in methods] or [f"--select-class={tests}"]
    # The token is passed in the environment, where other users of the machine cannot read it.
    environment = {**os.environ, "CATALOG_TOKEN": token}
    work.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, env=environment, cwd=work, check=False)


def report(suite: str, outcomes: list[Outcome], *, store: str, partial: bool) -> int:
    """Print a score, write it as JSON and compare it with the expectation, unless only some tests ran."""
    name = f"kit-{suite}-{store}"
    (OUTPUT / f"{name}.json").write_text(as_json(outcomes, kit=VERSION), encoding="utf-8")
    print(f"Iceberg's REST compatibility kit {VERSION}, {suite}, {store}: {as_text(outcomes)}")
    print(f"details: {OUTPUT.name}/{name}.json, {name}.log, server-{suite}-{store}.log")
    if partial:
        return int(any(outcome.verdict == "failed" for outcome in outcomes))
    expected = parse_expectation((HERE / f"expected_{suite}.txt").read_text(encoding="utf-8"))
    problems = complaints(outcomes, expected)
    for line in problems:
        print(f"  {line}")
    return 1 if problems else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except LimnosError as error:
        sys.exit(f"conformance: {error}")
