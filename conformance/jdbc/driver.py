# SPDX-License-Identifier: Apache-2.0
"""AsterixDB's JDBC driver and its tests: compiled from a checkout, with our few files, and run.

May import the compatibility kit's archive finder. Must not know the tests. Maven Central has only the driver's core, so
all of it comes from the checkout. The tests write canonical names of dataverses with `/`, as AsterixDB does today; the
service writes them with `.`, as its first releases did, so the compiled copy has the dot.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.kit.jars import cache_directory, class_path
from limnos.spark.java import find_java

if TYPE_CHECKING:
    from collections.abc import Iterable

HERE: Final = Path(__file__).parent
ROOT: Final = "asterixdb-jdbc"
_CLUSTER_TEST: Final = "JdbcDriverTest.java"
"""Starts AsterixDB itself; `Runner.java` replaces it."""


class DriverTest(NamedTuple):
    """One of the driver's own tests, and why it failed; empty if it passed."""

    name: str
    failure: str

    @classmethod
    def parse(cls, line: str) -> DriverTest:
        """Parse a line of `Runner.java`: outcome, name and reason, separated by tabs."""
        outcome, name, *reason = line.split("\t")
        return cls(name, "" if outcome == "passed" else " ".join(reason) or "without a message")


class CompiledDriver:
    """The driver, its tests and our programs in a folder of classes."""

    def __init__(self, checkout: Path, folder: Path) -> None:
        """Compile. Raises FileNotFoundError for a wrong directory or without a compiler, CalledProcessError."""
        root = checkout / ROOT
        if not root.is_dir():
            raise FileNotFoundError(f"{root} is missing: give a checkout of apache/asterixdb-clients")
        programs = find_java(cache=cache_directory()).home / "bin"
        self._java, compiler = programs / "java", programs / "javac"
        if not compiler.is_file():
            raise FileNotFoundError(f"{compiler} is missing: the driver's tests need a JDK, named by JAVA_HOME")
        self._classes, copies = folder / "classes", folder / "tests"
        archives = class_path(cache_directory(), HERE / "jars.lock")
        self._path = os.pathsep.join(map(str, (self._classes, *archives)))
        sources = [
            *(root / "asterix-jdbc-core" / "src" / "main" / "java").rglob("*.java"),
            *(root / "asterix-jdbc-driver" / "src" / "main" / "java").rglob("*.java"),
            *_copied_tests(root / "asterix-jdbc-test" / "src" / "test" / "java", copies),
            *(HERE / "java").glob("*.java"),
        ]
        self._classes.mkdir()
        options = ["-proc:none", "-nowarn", "-encoding", "utf-8", "-cp", self._path, "-d", self._classes]
        subprocess.run(list(map(str, (compiler, *options, *sources))), check=True)
        shutil.copytree(root / "asterix-jdbc-driver" / "src" / "main" / "resources", self._classes, dirs_exist_ok=True)

    def tests(self, address: str, user: str, password: str) -> list[DriverTest]:
        """Run the driver's own tests."""
        lines = self._run("org.apache.asterix.test.jdbc.Runner", *address.split(":"), user, password=password)
        return [DriverTest.parse(line) for line in lines]

    def session(self, address: str, user: str, password: str) -> list[str]:
        """Run our session, and return what it prints."""
        return self._run("Session", address, user, password=password)

    def _run(self, *arguments: str, password: str) -> list[str]:
        # The password is passed in the environment, where other users of the machine cannot read it.
        command = [str(self._java), "-Xmx512m", "-cp", self._path, *arguments]
        done = subprocess.run(
            command,
            env={**os.environ, "LIMNOS_PASSWORD": password},
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
        if done.returncode:
            raise RuntimeError(f"{arguments[0]} ended with {done.returncode}:\n{done.stderr[-4000:]}")
        return done.stdout.splitlines()


def _copied_tests(sources: Path, folder: Path) -> Iterable[Path]:
    """Copy the driver's tests, with the dot in canonical names. Returns the copies."""
    folder.mkdir()
    for source in sources.rglob("*.java"):
        if source.name != _CLUSTER_TEST:
            text = source.read_text(encoding="utf-8").replace('String.join("/", ', 'String.join(".", ')
            (folder / source.name).write_text(text, encoding="utf-8")
    return folder.glob("*.java")
