# SPDX-License-Identifier: Apache-2.0
"""Files that a Spark process needs before it starts: JAR archives and a Java runtime.

`prepare_files` fetches and creates missing files, and `SparkFiles` has their paths. With these files, a process that
may neither write files nor use the network can start Spark. Must not know sessions or servers.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from limnos.spark.jars import Progress, cache_directory, ensure_runtime
from limnos.spark.java import find_java


@dataclass(frozen=True, slots=True)
class SparkFiles:
    """Paths of the files: `jars` for the class path, `java_home` for JAVA_HOME, and `java_runtime`.

    `java_runtime` is the directory of the Java runtime. It differs from `java_home` if that is a launcher's directory.
    """

    jars: tuple[str, ...]
    java_home: str
    java_runtime: str

    def are_there(self) -> bool:
        """Return whether all of the files still exist. Does not check their contents."""
        return all(Path(path).exists() for path in (*self.jars, f"{self.java_home}/bin/java"))


def prepare_files(
    *, repository: str | None = None, cache: Path | None = None, progress: Progress | None = None
) -> SparkFiles:
    """Find or fetch the JAR archives for the installed PySpark, and a Java runtime. Takes seconds to minutes.

    Raises:
        UnsupportedOperation: PySpark is not installed, or its version has no runtime.
        ServiceUnavailable: An archive cannot be fetched or stored, or there is no Java.
    """
    jar = ensure_runtime(repository=repository, cache=cache, progress=progress)
    java = find_java(cache=cache or cache_directory())
    return SparkFiles((str(jar),), str(java.home), str(java.runtime))
