# SPDX-License-Identifier: Apache-2.0
"""The readers of metadata documents: Iceberg's Java library in two releases, PyIceberg, iceberg-rust and iceberg-go.

Job: a document in, `read` or the reader's error out; a request in, the document that the Java library makes of it out.
May import the archive finders and the builders of the other parts. It must not know how documents are made.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.table.name_mapping import _IndexByName, visit_name_mapping
from pyiceberg.view.metadata import ViewMetadata

from conformance.engines.archives import SPARK_35_RUNTIME, compiler, spark_35_jars
from conformance.engines.drivers.go_driver import Engine as Go
from conformance.engines.drivers.rust_driver import Engine as Rust
from conformance.engines.programs import go_program, rust_program
from conformance.kit.jars import cache_directory, class_path
from limnos.spark.java import find_java

READ: Final = "read"
MADE: Final = "made "
KIT_RELEASE: Final = "1.11.0"
SOURCES: Final = Path(__file__).parent / "java"


class Reader(Protocol):
    """A library that reads metadata documents."""

    name: str

    def read(self, kind: str, document: str) -> str:
        """Return `READ`, or the library's error. `kind` is `table` or `view`."""


class LineReader:
    """A library in a process of its own, which answers each line with a line."""

    def __init__(self, process: subprocess.Popen[str], name: str) -> None:
        self.process, self.name = process, name

    def read(self, kind: str, document: str) -> str:
        """Return `READ`, or the library's error. `kind` is `table` or `view`."""
        return self.ask(f"{kind} {document}")

    def ask(self, line: str) -> str:
        """Return the answer to a line. Raises RuntimeError if the process has ended."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.name} has ended at: {line}")
        return answer.rstrip("\n")


class PythonReader:
    """PyIceberg in this process."""

    name = "pyiceberg"

    def read(self, kind: str, document: str) -> str:
        """Return `READ`, or PyIceberg's error. `kind` is `table` or `view`."""
        try:
            if kind == "view":
                ViewMetadata.model_validate_json(document)
            else:
                mapping = TableMetadataUtil.parse_raw(document).name_mapping()
                if mapping is not None:
                    visit_name_mapping(mapping, _IndexByName())
        except Exception as error:
            return f"refused {type(error).__name__}: {' '.join(str(error).split())}"
        return READ


class Readers:
    """All readers. `reference` is the Java library that makes documents of requests, too."""

    def __init__(self, lines: Mapping[str, Sequence[str]]) -> None:
        self.all: list[Reader] = [PythonReader()]
        self._running: list[subprocess.Popen[str]] = []
        for name, command in lines.items():
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
            )
            self._running.append(process)
            self.all.append(reader := LineReader(process, name))
            if name == f"iceberg-core {KIT_RELEASE}":
                self.reference = reader

    def make(self, parts: Sequence[str]) -> str | None:
        """Return the document that the Java library makes of a request, or None if it refuses the request."""
        answer = self.reference.ask("\t".join(parts))
        return answer.removeprefix(MADE) if answer.startswith(MADE) else None

    def stop(self) -> None:
        """End the processes."""
        for process in self._running:
            process.kill()
            process.wait()


@contextmanager
def readers(work: Path) -> Iterator[Readers]:
    """Start the readers. Java's classes are compiled below a directory."""
    kit = class_path(cache_directory())
    java = str(find_java(cache=cache_directory()).home / "bin" / "java")
    releases = {
        f"iceberg-core {KIT_RELEASE}": kit,
        f"iceberg-spark-runtime {SPARK_35_RUNTIME.version}": _with_runtime(kit),
    }
    sources = [str(path) for path in sorted(SOURCES.glob("*.java"))]
    archives = os.pathsep.join(map(str, kit))
    options = ["-source", "17", "-target", "17", "-proc:none", "-nowarn", "-cp", archives, "-d", str(work)]
    subprocess.run([java, "-jar", str(compiler()), *options, *sources], check=True)
    started = Readers(
        {
            **{
                name: [
                    java,
                    "-Xmx512m",
                    "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
                    "-cp",
                    os.pathsep.join(map(str, (work, *jars))),
                    "MetadataReader",
                ]
                for name, jars in releases.items()
            },
            Rust.title: [str(rust_program("metadata_reader"))],
            Go.title: [str(go_program("reader-go", "./reader"))],
        }
    )
    try:
        yield started
    finally:
        started.stop()


def _with_runtime(kit: list[Path]) -> list[Path]:
    """Return the class path of Spark's runtime, with the kit's logger."""
    return [*spark_35_jars(with_s3=False), *[path for path in kit if path.name.startswith("slf4j-")]]
