# SPDX-License-Identifier: Apache-2.0
"""Real server processes for tests: started by the user's command, always stopped at the end."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MODE = "LIMNOS__ACCESS__AUTHENTICATION"
LIMNOS = (sys.executable, "-c", "import sys; from limnos.cli.main import main; sys.exit(main())")


@dataclass(frozen=True, kw_only=True)
class LiveServer:
    """A running server: its address, the admin's token, its data directory and its process."""

    uri: str
    token: str
    data: Path
    pid: int
    process: subprocess.Popen[str]


@contextmanager
def serving(
    data: Path, *flags: str, env: Mapping[str, str] | None = None, authentication: str = "simple"
) -> Iterator[LiveServer]:
    """Serve `data` on a free loopback port with additional flags and settings; the log is `DATA.log`. Without
    `authentication="token"`, the server believes user names.
    """
    log = data.with_suffix(f".{len(list(data.parent.glob('*.log')))}.log")
    command = [*LIMNOS, "server", "start", "--data", str(data), "--listen", "127.0.0.1:0", *flags]
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=os.environ | {MODE: authentication} | dict(env or {}),
        ) as process,
    ):
        try:
            uri = next((line[6:].strip() for line in process.stdout or () if line.startswith("ready ")), None)
            assert uri is not None, f"the server did not start:\n{log.read_text()}"
            token = (data / "admin.token").read_text().strip()
            yield LiveServer(uri=uri, token=token, data=data, pid=process.pid, process=process)
        finally:
            process.terminate()
            try:
                process.wait(timeout=300)
            except subprocess.TimeoutExpired:
                process.kill()
