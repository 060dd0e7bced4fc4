# SPDX-License-Identifier: Apache-2.0
"""The Java client's archive, our few files compiled against it, and their output.

Job: fetch, compile, run, read. May import the compatibility kit's archive finder and the parser of the Python suite's
output. It must not know the steps.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from conformance.engines.archives import compiler
from conformance.gravitino.client import ScriptOutput, read
from conformance.kit.jars import cache_directory, class_path
from limnos.spark.java import find_java

HERE: Final = Path(__file__).parent
SOURCES: Final = HERE / "java"
UNCALLED: Final = HERE / "uncalled.txt"
RELEASE: Final = "0.5.1"


def run_script(uri: str, token: str) -> ScriptOutput:
    """Run the steps against a server. Raises RuntimeError with Java's output if they aborted."""
    java = find_java(cache=cache_directory()).home / "bin" / "java"
    archives = os.pathsep.join(str(path) for path in class_path(cache_directory(), HERE / "jars.lock"))
    with tempfile.TemporaryDirectory(prefix="limnos-gravitino-java-") as classes:
        sources = [str(path) for path in sorted(SOURCES.glob("*.java"))]
        options = ["-source", "17", "-target", "17", "-proc:none", "-nowarn", "-cp", archives, "-d", classes]
        subprocess.run([str(java), "-jar", str(compiler()), *options, *sources], check=True)
        # The token is passed in the environment, where other users of the machine cannot read it.
        environment = {**os.environ, "GRAVITINO_USER": "admin", "LIMNOS_TOKEN": token}
        command = [str(java), "-Xmx512m", "-cp", os.pathsep.join((classes, archives)), "Script", uri]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        raise RuntimeError(f"The client's script broke off:\n{done.stderr[-4000:]}")
    return read(done.stdout, UNCALLED)


def aged(script_output: ScriptOutput) -> dict[str, str]:
    """Return the steps with another outcome because the client is older than the protocol, with the reason."""
    return {each["step"]: each["age"] for each in script_output.steps if each["age"]}
