# SPDX-License-Identifier: Apache-2.0
"""One clean environment with the wheel and some extras, and the commands that run in it.

May import the standard library, and the script of `limnos-client`. Knows no extra.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from scripts.client_package import write_project

ROOT = Path(__file__).parents[2]
UV = ROOT / ".venv" / "bin" / "uv"
TIMEOUT_S = 1_800
KEPT = (
    "PATH",
    "HOME",
    "LANG",
    "XDG_CACHE_HOME",
    "JAVA_HOME",
    "UV_CACHE_DIR",
    "UV_DEFAULT_INDEX",
    "UV_INDEX_URL",
    "SSL_CERT_FILE",
)


class Unmet(AssertionError):
    """An extra does not serve its purpose."""


def build_wheel(folder: Path) -> Path:
    """Build the wheel of the checkout."""
    subprocess.run([UV, "build", "--wheel", "--out-dir", folder, ROOT], check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def build_client_wheel(folder: Path) -> Path:
    """Build the wheel of `limnos-client`."""
    write_project(ROOT, folder / "project")
    subprocess.run([UV, "build", "--wheel", "--out-dir", folder, folder / "project"], check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def constraints(folder: Path) -> Path:
    """Write the versions of the lock file as constraints of the environments."""
    file = folder / "constraints.txt"
    words = [
        UV,
        "export",
        "--frozen",
        "--all-extras",
        "--no-emit-project",
        "--no-hashes",
        "--no-dev",
        "--quiet",
        "--output-file",
        file,
    ]
    subprocess.run(words, check=True, cwd=ROOT, capture_output=True)
    return file


@dataclass(frozen=True)
class Place:
    """An environment with the wheel, and a directory to work in."""

    home: Path
    work: Path

    @classmethod
    def make(cls, folder: Path, *, wheel: Path, versions: Path, extras: str) -> Place:
        """Create a fresh environment with the wheel and only these extras."""
        home, work = folder / "env", folder / "work"
        work.mkdir(parents=True)
        subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, home], check=True)
        name = wheel.name.partition("-")[0].replace("_", "-")
        named = f"{name}[{extras}] @ {wheel.as_uri()}" if extras else f"{name} @ {wheel.as_uri()}"
        words = [UV, "pip", "install", "--quiet", "--python", home / "bin" / "python", "--constraint", versions, named]
        subprocess.run(words, check=True)
        return cls(home, work)

    @property
    def environ(self) -> dict[str, str]:
        """The environment variables of its programs: nothing of the checkout."""
        return {name: os.environ[name] for name in KEPT if name in os.environ} | {
            "LIMNOS_PROFILES": str(self.work / "profiles.json"),
            "LIMNOS_OUTPUT": "json",
        }

    def run(self, *words: str, code: int = 0, **environ: str) -> str:
        """Run `limnos …`; returns both outputs. Raises Unmet for another exit code."""
        return self._run([str(self.home / "bin" / "limnos"), *words], code=code, environ=environ)

    def python(self, program: str, *words: str, **environ: str) -> str:
        """Run a program with the environment's Python. Raises Unmet if it fails."""
        return self._run([str(self.home / "bin" / "python"), "-c", program, *words], code=0, environ=environ)

    def _run(self, words: list[str], *, code: int, environ: dict[str, str]) -> str:
        done = subprocess.run(
            words,
            cwd=self.work,
            env=self.environ | environ,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        output = done.stdout + done.stderr
        if done.returncode != code:
            raise Unmet(f"{' '.join(words[:6])}: exit code {done.returncode}, not {code}: {output[-2000:]}")
        return output

    @contextmanager
    def server(self, *flags: str, data: str = "data", **environ: str) -> Iterator[Server]:
        """Run a server of the environment on a free loopback port."""
        words = [
            str(self.home / "bin" / "limnos"),
            "server",
            "start",
            "--data",
            data,
            "--listen",
            "127.0.0.1:0",
            *flags,
        ]
        with (self.work / "server.log").open("ab") as log:
            running = subprocess.Popen(
                words, cwd=self.work, env=self.environ | environ, stdout=subprocess.PIPE, stderr=log, text=True
            )
        try:
            yield Server(self, _ready(running, self.work / "server.log"), self.work / data)
        finally:
            running.terminate()
            running.wait(30)


def _ready(running: subprocess.Popen[str], log: Path) -> str:
    lines: queue.Queue[str] = queue.Queue()

    def read() -> None:
        assert running.stdout is not None
        for line in running.stdout:
            lines.put(line)
        lines.put("")

    threading.Thread(target=read, daemon=True).start()
    line = lines.get(timeout=300)
    if not line.startswith("ready "):
        raise Unmet(f"the server does not start: {log.read_text()[-2000:]}")
    return line.split()[1]


@dataclass(frozen=True)
class Server:
    """A running server, and its environment."""

    place: Place
    uri: str
    data: Path

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags with which a command connects to it as its admin."""
        return "--uri", self.uri, "--token-file", str(self.data / "admin.token")

    def run(self, *words: str, code: int = 0) -> str:
        """Run a command against it, in the same environment."""
        return self.place.run(*words, *self.flags, code=code)

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, object]:
        """Send a request as the admin."""
        headers = {
            "Authorization": f"Bearer {(self.data / 'admin.token').read_text().strip()}",
            "Content-Type": "application/json",
            "Accept": "application/vnd.gravitino.v1+json, application/json",
        }
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.uri + path, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                content = answer.read()
                return answer.status, json.loads(content or b"null")
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read() or b"null")

    def make_table(self, catalog: str = "main", *, space: str = "a") -> str:
        """Create a namespace and an Iceberg table; returns the table's metadata location. Raises Unmet."""
        root = f"/iceberg/v1/lake.{catalog}/namespaces"
        self.ask("POST", root, {"namespace": [space]})
        schema = {"type": "struct", "fields": [{"id": 1, "name": "x", "required": False, "type": "long"}]}
        status, body = self.ask("POST", f"{root}/{space}/tables", {"name": "t", "schema": schema})
        if status != 200 or not isinstance(body, dict):
            raise Unmet(f"a table in {catalog} is not made: {status} {body}")
        return str(body["metadata-location"])

    def make_catalog(
        self, name: str, *, provider: str, kind: str = "relational", **properties: str
    ) -> tuple[int, object]:
        """Create a catalog over Gravitino REST."""
        body = {"name": name, "type": kind, "provider": provider, "comment": "", "properties": properties}
        return self.ask("POST", "/api/metalakes/lake/catalogs", body)
