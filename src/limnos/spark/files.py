"""What a Spark process needs on disk before it can start: its archives and a Java.

Job: `prepare_files` fetches and makes what is missing, `SparkFiles` says where it lies, so that a process that may neither write nor ask the network can
start Spark. May import the sibling modules and the standard library. It must not know of sessions or servers.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from limnos.spark.jars import cache_directory, ensure_runtime
from limnos.spark.java import find_java

if TYPE_CHECKING:
    from limnos.spark.jars import Progress


@dataclass(frozen=True, slots=True)
class SparkFiles:
    """Where archives and Java lie: `jars` for the class path, `java_home` for JAVA_HOME, `java_runtime` where that Java's own files are."""

    jars: tuple[str, ...]
    java_home: str
    java_runtime: str

    def are_there(self) -> bool:
        """Whether they have not been removed since; contents are not looked at."""
        return all(Path(path).exists() for path in (*self.jars, f"{self.java_home}/bin/java"))


def prepare_files(
    *, repository: str | None = None, cache: Path | None = None, progress: Progress | None = None
) -> SparkFiles:
    """Find the archives for the installed PySpark and a Java, fetching and making what is missing; takes seconds to minutes.

    Raises:
        Unsupported: PySpark is not installed, or there is no runtime for its version.
        Unavailable: an archive cannot be had or kept, or there is no Java.
    """
    jar = ensure_runtime(repository=repository, cache=cache, progress=progress)
    java = find_java(cache=cache or cache_directory())
    return SparkFiles((str(jar),), str(java.home), str(java.runtime))
