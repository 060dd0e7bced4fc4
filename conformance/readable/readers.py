"""The readers of metadata documents: Iceberg's Java library in two releases, and PyIceberg.

Job: a document in, `read` or the reader's error out. May import the archive finders of the other parts. It must not
know how documents are made.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.view.metadata import ViewMetadata

from conformance.engines.archives import SPARK_35_RUNTIME, compiler, spark_35_jars
from conformance.kit.jars import cache_directory, class_path
from limnos.spark.java import find_java

READ: Final = "read"
KIT_RELEASE: Final = "1.11.0"
SOURCES: Final = Path(__file__).parent / "java"
PYICEBERG_LACKS: Final = re.compile(
    r"'(?:geometry|geography)|(?:geometry|geography)\(|unknown|type timestamp(?:tz)?_ns|variant|Cannot deserialize bytes"
    r"|manifest-list Field required"
)
"""Messages for what PyIceberg does not have, whatever the document says of it: types of format version 3, and snapshots
of version 1 that name their manifests themselves.
"""


class JavaReader:
    """Iceberg's Java library in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], name: str) -> None:
        self.process, self.name = process, name

    def read(self, kind: str, document: str) -> str:
        """Return `READ`, or the library's error. `kind` is `table` or `view`."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{kind} {document}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip("\n")


class PythonReader:
    """PyIceberg in this process."""

    name = "pyiceberg"

    def read(self, kind: str, document: str) -> str:
        """Return `READ`, or PyIceberg's error. `kind` is `table` or `view`."""
        try:
            if kind == "view":
                ViewMetadata.model_validate_json(document)
            else:
                TableMetadataUtil.parse_raw(document)
        except Exception as error:
            text = " ".join(str(error).split())
            return READ if PYICEBERG_LACKS.search(text) else f"refused {type(error).__name__}: {text}"
        return READ


@contextmanager
def readers(work: Path) -> Iterator[list[JavaReader | PythonReader]]:
    """Start the readers, compiled below a directory."""
    kit = class_path(cache_directory())
    java = find_java(cache=cache_directory()).home / "bin" / "java"
    releases = {
        f"iceberg-core {KIT_RELEASE}": kit,
        f"iceberg-spark-runtime {SPARK_35_RUNTIME.version}": _with_runtime(kit),
    }
    sources = [str(path) for path in sorted(SOURCES.glob("*.java"))]
    archives = os.pathsep.join(map(str, kit))
    options = ["-source", "17", "-target", "17", "-proc:none", "-nowarn", "-cp", archives, "-d", str(work)]
    subprocess.run([str(java), "-jar", str(compiler()), *options, *sources], check=True)
    running: list[subprocess.Popen[str]] = []
    try:
        result: list[JavaReader | PythonReader] = [PythonReader()]
        for name, jars in releases.items():
            command = [str(java), "-Xmx512m", "-cp", os.pathsep.join(map(str, (work, *jars))), "MetadataReader"]
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
            )
            running.append(process)
            result.append(JavaReader(process, name))
        yield result
    finally:
        for process in running:
            process.kill()
            process.wait()


def _with_runtime(kit: list[Path]) -> list[Path]:
    """Return the class path of Spark's runtime, with the kit's logger."""
    return [*spark_35_jars(with_s3=False), *[path for path in kit if path.name.startswith("slf4j-")]]
