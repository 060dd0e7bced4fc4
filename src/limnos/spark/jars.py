# SPDX-License-Identifier: Apache-2.0
"""Java archives for Spark (Iceberg, S3, lineage, databases): pinned, fetched, verified and cached.

Returns the local path of the Iceberg runtime for the installed PySpark, and of the other archives. Must not know
sessions. Nothing is resolved at run time: each PySpark release has one pinned archive with its SHA-256. So all machines
run identical files, and a second start needs no network.

Settings, both from the environment: `LIMNOS__SPARK__REPOSITORY` (base URL of a Maven repository) and
`LIMNOS__SPARK__CACHE` (directory). An archive in the home directory's `.m2/repository` is used from there.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import http.client
import logging
import os
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import BinaryIO, Final

from limnos.model.errors import BadRequest, ServiceUnavailable, UnsupportedOperation
from limnos.model.extras import install_hint

Progress = Callable[[int, int], None]
"""Called with (bytes so far, bytes in all) while an archive is fetched."""

logger = logging.getLogger(__name__)

MAVEN_CENTRAL = "https://repo1.maven.org/maven2"
REPOSITORY_VARIABLE = "LIMNOS__SPARK__REPOSITORY"
CACHE_VARIABLE = "LIMNOS__SPARK__CACHE"
_ATTEMPTS = 3
_CHUNK_BYTES = 1 << 18
_OF_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS)
"""Errors of the cache directory. A retry would fail in the same way."""
LOCK_FILE = ".fetching.lock"
_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A pinned archive of a Maven repository: `sha256` in hex, `size_bytes` of the file."""

    group: str
    name: str
    version: str
    sha256: str
    size_bytes: int

    @property
    def filename(self) -> str:
        """The file's name: `name-version.jar`."""
        return f"{self.name}-{self.version}.jar"

    @property
    def relative_path(self) -> str:
        """The path below a repository's base URL, in Maven's layout: `group/name/version/filename`."""
        return f"{self.group.replace('.', '/')}/{self.name}/{self.version}/{self.filename}"


ICEBERG_RUNTIMES: Mapping[str, Artifact] = {
    "4.0": Artifact(
        group="org.apache.iceberg",
        name="iceberg-spark-runtime-4.0_2.13",
        version="1.11.0",
        sha256="63c3b812549dc232c1920865ff42436df8604a9bbacd693930985c06bd97e6dc",
        size_bytes=47_926_285,
    ),
    "4.1": Artifact(
        group="org.apache.iceberg",
        name="iceberg-spark-runtime-4.1_2.13",
        version="1.12.0",
        sha256="3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82",
        size_bytes=48_309_426,
    ),
}
"""PySpark's major.minor version -> the Iceberg runtime tested with it. A new Spark line adds an entry."""

AWS_BUNDLE = "iceberg-aws-bundle"
AWS_BUNDLES: Mapping[str, Artifact] = {
    "1.11.0": Artifact(
        group="org.apache.iceberg",
        name=AWS_BUNDLE,
        version="1.11.0",
        sha256="38f01da7e96850cdd05e6616d758b77b43314b712a8808e3f9a824d56976162f",
        size_bytes=63_613_165,
    ),
    "1.12.0": Artifact(
        group="org.apache.iceberg",
        name=AWS_BUNDLE,
        version="1.12.0",
        sha256="dd7e49ffa4ac9b215bed846581991259e3aec9bb2fa08d6cec029c46cd66d957",
        size_bytes=69_034_612,
    ),
}
"""Iceberg's version -> the archive that its runtime needs to reach S3: Amazon's libraries for Iceberg's own S3 code."""

_MARIADB: Final = (
    "org.mariadb.jdbc.Driver",
    Artifact(
        group="org.mariadb.jdbc",
        name="mariadb-java-client",
        version="3.5.7",
        sha256="07bb1229dc184f3313a5aef4c5a6b3207c8dbaa09db4a26814c936f004b4c526",
        size_bytes=763_697,
    ),
)
JDBC_DRIVERS: Mapping[str, tuple[str, Artifact]] = {
    "mariadb": _MARIADB,
    "mysql": _MARIADB,
    "postgresql": (
        "org.postgresql.Driver",
        Artifact(
            group="org.postgresql",
            name="postgresql",
            version="42.7.7",
            sha256="157963d60ae66d607e09466e8c0cdf8087e9cb20d0159899ffca96bca2528460",
            size_bytes=1_098_916,
        ),
    ),
}
"""Database name in a JDBC URL -> the driver's class and archive. Users must add other drivers to Spark themselves."""


OPENLINEAGE = Artifact(
    group="io.openlineage",
    name="openlineage-spark_2.13",
    version="1.53.0",
    sha256="5d84b0ae7e72909b5aae7ed87df878bf06b28d9ac3005765c3529d0a66dbae6f",
    size_bytes=43_037_532,
)
"""OpenLineage's Spark listener, which reports the sources and targets of statements; for Spark 4 (Scala 2.13)."""


def _spark_module(name: str, sha256: str, *, size_bytes: int) -> Artifact:
    return Artifact(
        group="org.apache.spark", name=f"{name}_2.13", version="4.1.1", sha256=sha256, size_bytes=size_bytes
    )


KAFKA_CONNECTORS: Mapping[str, tuple[Artifact, ...]] = {
    "4.1": (
        _spark_module(
            "spark-sql-kafka-0-10",
            "9c1ce986f548e6b1dcb0e2dfe2f253a0bc58f2232a32a0c9c6c674dd25a8570c",
            size_bytes=491_694,
        ),
        _spark_module(
            "spark-token-provider-kafka-0-10",
            "e510adc37b03d01d0a190d0dab472b5538e05eaa77454f7e9477156d7a6820ae",
            size_bytes=66_579,
        ),
        Artifact(
            group="org.apache.kafka",
            name="kafka-clients",
            version="3.9.1",
            sha256="7568b998572d256f0b7bc0afdc1b7a2588b8b08415c62ce314c864a6851ae9d9",
            size_bytes=9_215_194,
        ),
        Artifact(
            group="org.apache.commons",
            name="commons-pool2",
            version="2.12.1",
            sha256="5273c8bc8c0dca2211175c0d27efbd7228efae99689aac001a8e1ef8e872e9ef",
            size_bytes=152_289,
        ),
    )
}
"""PySpark's major.minor version -> Spark's connector for Kafka, and the archives that it needs."""

AVRO_READERS: Mapping[str, Artifact] = {
    "4.1": _spark_module(
        "spark-avro", "6a19d90bc3b6e88d8db0fa36a19273aa10fea2dbd7a62bb60e4cedd73051b32d", size_bytes=92_354
    )
}
"""PySpark's major.minor version -> Spark's functions for values in Avro."""


def kafka_archives(pyspark_version: str, *, avro: bool) -> tuple[Artifact, ...]:
    """Return the archives by which a PySpark version reads topics of Kafka, with `avro` also values in Avro.

    Raises UnsupportedOperation if none are pinned for that version.
    """
    line = ".".join(pyspark_version.split(".")[:2])
    connector = KAFKA_CONNECTORS.get(line)
    if connector is None:
        versions = " and ".join(f"{key}.x" for key in sorted(KAFKA_CONNECTORS))
        raise UnsupportedOperation(
            f"PySpark {pyspark_version} cannot read Kafka here: Limnos has connectors for PySpark {versions}. Run "
            "`pip install 'pyspark==4.1.4'`.",
            pyspark=pyspark_version,
        )
    return (*connector, AVRO_READERS[line]) if avro else connector


def installed_pyspark() -> str:
    """Return the version of the installed PySpark.

    Raises UnsupportedOperation, which names the extra to install, if PySpark is not installed.
    """
    try:
        return metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        raise UnsupportedOperation(f"PySpark is not installed: {install_hint('spark')}") from None


def runtime_for(pyspark_version: str) -> Artifact:
    """Return the pinned Iceberg runtime for a PySpark version such as `4.1.4`.

    Raises UnsupportedOperation if no runtime is pinned for that version.
    """
    line = ".".join(pyspark_version.split(".")[:2])
    artifact = ICEBERG_RUNTIMES.get(line)
    if artifact is None:
        versions = " and ".join(f"{key}.x" for key in sorted(ICEBERG_RUNTIMES))
        raise UnsupportedOperation(
            f"PySpark {pyspark_version} cannot be used: Limnos has Iceberg runtimes for PySpark {versions} only, and a "
            "runtime of another line breaks at the first statement. Run `pip install 'pyspark==4.1.4'`.",
            pyspark=pyspark_version,
        )
    return artifact


def cache_directory(environ: Mapping[str, str] | None = None) -> Path:
    """Return the directory of archives and launchers: the setting, or `limnos/jars` in the home's XDG cache."""
    environ = os.environ if environ is None else environ
    if configured_path := environ.get(CACHE_VARIABLE):
        return Path(configured_path).expanduser().absolute()
    base = environ.get("XDG_CACHE_HOME")
    # The XDG specification: a relative path is invalid and must be ignored.
    root = Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache"
    return root / "limnos" / "jars"


def repository_url(environ: Mapping[str, str] | None = None) -> str:
    """Return the base URL of the Maven repository, without a trailing slash. Raises BadRequest if the setting is not a
    URL.
    """
    environ = os.environ if environ is None else environ
    url = environ.get(REPOSITORY_VARIABLE) or MAVEN_CENTRAL
    if not url.startswith(("https://", "http://", "file://")):
        raise BadRequest(f"{REPOSITORY_VARIABLE} is {url!r}: give the base URL of a Maven repository (https://…).")
    return url.rstrip("/")


def ensure_runtime(
    pyspark_version: str | None = None,
    *,
    repository: str | None = None,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Path:
    """Return the local path of the Iceberg runtime for a PySpark version (default: the installed one). Downloads it if
    it is not cached.

    Raises UnsupportedOperation (no runtime for that PySpark) or ServiceUnavailable (the download failed, or the SHA-256
    differs).
    """
    artifact = runtime_for(pyspark_version or installed_pyspark())
    return ensure(artifact, repository=repository, cache=cache, progress=progress)


def ensure_s3(
    pyspark_version: str | None = None,
    *,
    repository: str | None = None,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Path:
    """Return the path of the `iceberg-aws-bundle` JAR, which Iceberg needs for S3. Downloads it if it is not cached.

    Raises as `ensure_runtime` does.
    """
    artifact = AWS_BUNDLES[runtime_for(pyspark_version or installed_pyspark()).version]
    return ensure(artifact, repository=repository, cache=cache, progress=progress)


def ensure_listener(
    *, repository: str | None = None, cache: Path | None = None, progress: Progress | None = None
) -> Path:
    """Return the local path of OpenLineage's Spark listener. Downloads it if it is not cached. Raises
    ServiceUnavailable if the download fails.
    """
    return ensure(OPENLINEAGE, repository=repository, cache=cache, progress=progress)


def ensure(
    artifact: Artifact, *, repository: str | None = None, cache: Path | None = None, progress: Progress | None = None
) -> Path:
    """Return the local path of `artifact`: from the cache, from `.m2/repository`, or fetched and verified.

    A lock in the cache directory lets one process fetch it while others wait. Raises ServiceUnavailable if the download
    fails, the SHA-256 differs, or the cache cannot be written.
    """
    directory = cache or cache_directory()
    path = _local(artifact, directory)
    if path is not None:
        return path
    url = f"{repository.rstrip('/') if repository else repository_url()}/{artifact.relative_path}"
    cached = directory / artifact.filename
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with _directory_lock(directory):
            if not _is_pinned_file(cached, artifact):  # another process may have fetched it during the wait
                _fetch_with_retries(url, artifact, target=cached, progress=progress)
    except OSError as error:
        raise _not_writable(directory, error) from None
    return cached


def fetched_bytes(artifact: Artifact, *, cache: Path | None = None) -> int | None:
    """Return the downloaded size of an archive in bytes, including a download in progress in any process; None if no
    file exists.

    Compares sizes only; `ensure` verifies the SHA-256.
    """
    directory = cache or cache_directory()
    candidate_files = (directory / artifact.filename, _maven_local(artifact))
    sizes = [_size(path) for path in candidate_files]
    if artifact.size_bytes in sizes:
        return artifact.size_bytes
    return max((_size(path) for path in directory.glob(f".{artifact.filename}-*")), default=None)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _maven_local(artifact: Artifact) -> Path:
    return Path.home() / ".m2" / "repository" / artifact.relative_path


def _local(artifact: Artifact, directory: Path) -> Path | None:
    """Return the path of a complete copy of the archive in the cache or in `.m2/repository`; None if there is none."""
    cached = directory / artifact.filename
    if _is_pinned_file(cached, artifact):
        return cached
    local = _maven_local(artifact)
    if _is_pinned_file(local, artifact):
        logger.info("using %s from the local Maven repository", artifact.filename)
        return local
    return None


@contextmanager
def _directory_lock(directory: Path) -> Iterator[None]:
    """Hold the directory's lock for the body of a `with`. The operating system releases it when the process ends.
    Raises OSError.
    """
    with (directory / LOCK_FILE).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            logger.info("another process fetches archives to %s: waiting for it", directory)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _not_writable(directory: Path, error: OSError) -> ServiceUnavailable:
    return ServiceUnavailable(
        f"Archives for Spark cannot be kept in {directory}: {error.strerror or error}. Correct that, or name another"
        f" directory in {CACHE_VARIABLE}."
    )


def _is_pinned_file(path: Path, artifact: Artifact) -> bool:
    """Return whether the file has the pinned size and SHA-256. A mismatch is logged."""
    if not path.is_file():
        return False
    with path.open("rb") as source:
        digest = hashlib.file_digest(source, "sha256").hexdigest()
    if digest != artifact.sha256:
        logger.warning("%s is not the pinned %s: its SHA-256 is %s; skipped", path, artifact.filename, digest)
    return digest == artifact.sha256


def _fetch_with_retries(url: str, artifact: Artifact, *, target: Path, progress: Progress | None) -> None:
    """Download an archive in up to three attempts; only transient errors are retried. Raises ServiceUnavailable after
    the last attempt.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            _fetch(url, artifact, target=target, progress=progress)
        except urllib.error.HTTPError as error:
            reason, again = f"the answer was {error.code} {error.reason}", error.code >= 500 or error.code == 429
        except (OSError, EOFError, http.client.HTTPException) as error:
            if isinstance(error, OSError) and error.errno in _OF_THE_DISK:
                raise
            reason, again = str(getattr(error, "reason", error)), True
        else:
            logger.info("fetched %s", url)
            return
        logger.warning("fetching %s, attempt %d of %d: %s", url, attempt, _ATTEMPTS, reason)
        if not again or attempt == _ATTEMPTS:
            raise ServiceUnavailable(
                f"Could not fetch {url}: {reason}. Set {REPOSITORY_VARIABLE} to a Maven repository that has it, or put "
                f"the file at {target}.",
                url=url,
            )
        time.sleep(0.5 * attempt)


def _fetch(url: str, artifact: Artifact, *, target: Path, progress: Progress | None) -> None:
    """Fetch an archive into a temporary file, and rename it to the target. Raises ServiceUnavailable if its SHA-256 is
    not the pinned one.
    """
    handle, side = tempfile.mkstemp(dir=target.parent, prefix=f".{artifact.filename}-")
    try:
        with os.fdopen(handle, "wb") as out, urllib.request.urlopen(url, timeout=_TIMEOUT_S) as source:  # noqa: S310
            digest = _copy(source, out, size_bytes=artifact.size_bytes, progress=progress)
        if digest != artifact.sha256:
            raise ServiceUnavailable(
                f"{url} is not the pinned archive: its SHA-256 is {digest}, expected {artifact.sha256}. Nothing was "
                f"kept; check the repository that {REPOSITORY_VARIABLE} names.",
                url=url,
            )
        Path(side).chmod(0o644)
        Path(side).replace(target)
    finally:
        Path(side).unlink(missing_ok=True)


def _copy(source: BinaryIO, out: BinaryIO, *, size_bytes: int, progress: Progress | None) -> str:
    """Copy all of `source`, reporting `progress`. Returns the SHA-256 in hex. Raises EOFError if it ends early."""
    digest = hashlib.sha256()
    copied_bytes = 0
    while chunk := source.read(_CHUNK_BYTES):
        out.write(chunk)
        digest.update(chunk)
        copied_bytes += len(chunk)
        if progress is not None:
            progress(min(copied_bytes, size_bytes), size_bytes)
    if copied_bytes < size_bytes:
        raise EOFError(f"the transfer ended after {copied_bytes} of {size_bytes} bytes")
    return digest.hexdigest()
