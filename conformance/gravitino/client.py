# SPDX-License-Identifier: Apache-2.0
"""The official Python client in a separate environment, because it needs older libraries, and the output of the suite's
script.

May import the standard library only.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
RELEASE: Final = "1.3.1"
HOME: Final = ROOT / ".tools" / f"gravitino-client-{RELEASE}"
SCRIPT: Final = Path(__file__).with_name("script.py")
UNCALLED: Final = Path(__file__).with_name("uncalled.txt")
_TRUST_STORES: Final = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")


class ScriptOutput(NamedTuple):
    """The output of the script: the client's public methods, those that were called, and the outcome of each step."""

    known: frozenset[str]
    called: frozenset[str]
    steps: list[dict[str, str]]
    reasons: dict[str, str]
    """Methods that are not called, each with its reason."""

    @property
    def failed(self) -> list[str]:
        """The steps with an unexpected outcome."""
        return [
            f"{each['who']}: {each['step']}: {each['told']}, not {each['wants']}"
            for each in self.steps
            if each["outcome"] != "ok"
        ]

    @property
    def forgotten(self) -> list[str]:
        """Methods that were neither called nor have a reason for that; and reasons for methods that were called."""
        unknown = [
            f"{name} is called or gone, and still listed"
            for name in self.reasons
            if name not in self.known - self.called
        ]
        return [f"{name} was not called" for name in sorted(self.known - self.called - set(self.reasons))] + unknown

    def totals(self) -> str:
        """One line for each caller, and one for all."""
        lines = []
        for who in dict.fromkeys(each["who"] for each in self.steps):
            own = [each["outcome"] for each in self.steps if each["who"] == who]
            lines.append(f"{who}: {own.count('ok')} of {len(own)} steps as they should be")
        return "\n".join(
            (
                *lines,
                (
                    f"{len(self.called)} of {len(self.known)} public methods called; {len(self.reasons)} listed with a"
                    " reason"
                ),
            )
        )


def uncalled(file: Path) -> dict[str, str]:
    """Methods that a suite does not call, each with its reason."""
    lines = (
        line.partition(" | ") for line in file.read_text(encoding="utf-8").splitlines() if not line.startswith("#")
    )
    return {name: reason for name, _, reason in lines}


def read(output: str, reasons: Path) -> ScriptOutput:
    """Parse the output of a script: one JSON object. `reasons`: the file that lists the uncalled methods with
    reasons.
    """
    document = json.loads(output)
    return ScriptOutput(
        frozenset(document["known"]), frozenset(document["called"]), document["steps"], uncalled(reasons)
    )


def run_script(uri: str) -> ScriptOutput:
    """Run the script against a server with the admin's name in Basic authentication. Raises RuntimeError with its
    output if it aborted.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GRAVITINO_"))}
    done = subprocess.run(
        [str(interpreter()), "-W", "ignore", str(SCRIPT), uri],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if done.returncode:
        raise RuntimeError(f"The client's script broke off:\n{done.stderr[-4000:]}")
    return read(done.stdout, UNCALLED)


def interpreter() -> Path:
    """Return an interpreter with the client, whose old libraries must not mix with ours; created once, by the first
    caller.
    """
    ready = HOME / "ready"
    python = HOME / "bin" / "python"
    HOME.parent.mkdir(exist_ok=True)
    with (HOME.parent / f"{HOME.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists():
            uv = str(Path(sys.executable).with_name("uv"))
            subprocess.run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(HOME)], check=True)
            package = f"apache-gravitino=={RELEASE}"
            install = [uv, "pip", "install", "--quiet", "--python", str(python), package]
            subprocess.run(install, check=True, env=_environment())
            ready.touch()
    return python


def _environment() -> dict[str, str]:
    """Return the environment that uv needs, as in scripts/setup.sh: the machine's trust store if there is one, and a
    writable cache.
    """
    variables = {"UV_CACHE_DIR": str(HOME.parent / "uv-cache")}
    if any(Path(store).exists() for store in _TRUST_STORES):
        variables["UV_SYSTEM_CERTS"] = "true"
    return {**os.environ, **variables}


def settings_in(folder: Path) -> str:
    """Write the settings of the suite's server, which runs jobs; returns the file."""
    file = folder / "limnos.toml"
    file.write_text(
        '[access]\nauthentication = "simple"\n[jobs]\nexecutor = "local"\nconfined = false\nallowed = ["/bin/true",'
        ' "/bin/sleep"]\n',
        encoding="utf-8",
    )
    return str(file)
