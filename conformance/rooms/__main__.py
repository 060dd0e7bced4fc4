# SPDX-License-Identifier: Apache-2.0
"""`conformance/run rooms [ROOM…]`: starts a server without each room, switched off and deleted, and asks the others.

For each room two servers are started on a new data directory: one with `rooms.off`, and one from a copy of the source
without the room's folders. The addresses of the room must be 404, those of all others must answer. Prints the lines of
the kernel and of each room, and CPU and memory of the started server beside one with all rooms. Exit code 1 if
something is wrong.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from limnos.manifests.installed import installed_rooms

ROOT: Final = Path(__file__).parents[2]
OWN: Final = "/api/limnos/v1/metalakes/lake"
ADDRESSES: Final[Mapping[str, str]] = {
    "console": "/console/sign-in",
    "exchange": "/api/limnos/v1/imports",
    "gravitino": "/api/metalakes/lake/catalogs",
    "jobs": "/api/metalakes/lake/jobs/templates",
    "lance": "/lance/v1/namespace/main/list",
    "maintenance": f"{OWN}/catalogs/main/maintenance/findings",
    "pipelines": f"{OWN}/pipelines",
    "search": f"{OWN}/search?q=x",
    "sqlpp": "/query/service?statement=select+value+1",
}
"""An address of each room that has some."""
KERNEL: Final = ("/iceberg/v1/lake.main/namespaces", "/api/limnos/v1/whoami", "/health", "/iceberg/v1/config")
WITHIN: Final[Mapping[str, frozenset[str]]] = {"gravitino": frozenset({"jobs"})}
"""Rooms whose address lies in a protocol of another room."""
TICKS: Final = os.sysconf("SC_CLK_TCK")


class Start(NamedTuple):
    """A started server: the CPU seconds until it was ready, its memory in MB, and the statuses of addresses."""

    cpu_s: float
    memory_mb: int
    statuses: dict[str, int]


@contextmanager
def running(source: Path, variables: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """Run a server of a source tree on a new data directory; returns its URL and process id."""
    with tempfile.TemporaryDirectory() as data, (Path(data) / "log").open("w") as log:
        words = ["server", "start", "--data", f"{data}/d", "--listen", "127.0.0.1:0", "--authentication", "simple"]
        process = subprocess.Popen(
            [sys.executable, "-m", "limnos.cli.main", *words],
            env={**os.environ, "PYTHONPATH": str(source), **variables},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=data,
        )
        try:
            line = process.stdout.readline() if process.stdout else ""
            if not line.startswith("ready "):
                raise SystemExit(f"the server did not start: {(Path(data) / 'log').read_text()[-2000:]}")
            yield line.split()[1], process.pid
        finally:
            process.terminate()
            process.communicate(timeout=60)


def status(url: str) -> int:
    """Return the status of a request as admin."""
    request = urllib.request.Request(url, headers={"Authorization": "Basic YWRtaW46eA=="})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def start(source: Path, **variables: str) -> Start:
    """Start a server and ask every address."""
    with running(source, variables) as (url, process):
        used = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        memory_kb = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
        statuses = {path: status(url + path) for path in (*ADDRESSES.values(), *KERNEL)}
        return Start((int(used[11]) + int(used[12])) / TICKS, memory_kb // 1024, statuses)


def folders_of(room: str) -> list[str]:
    """Return the folders of a room below the sources: its own, and those of packages that its manifest names."""
    manifest = next(each for each in installed_rooms().manifests if each.name == room)
    return [package.replace(".", "/") for package in (f"limnos.rooms.{room}", *manifest.packages)]


@contextmanager
def without(source: Path, folders: Sequence[str], *, away: Path) -> Iterator[None]:
    """Move folders of a source tree away until the block ends."""
    for number, name in enumerate(folders):
        (source / name).rename(away.with_name(f"{away.name}{number}"))
    try:
        yield
    finally:
        for number, name in enumerate(folders):
            away.with_name(f"{away.name}{number}").rename(source / name)


def problems(room: str, server: Start) -> list[str]:
    """Return which addresses answer otherwise than they should without a room."""
    off = {ADDRESSES[each] for each in {room, *WITHIN.get(room, ())} if each in ADDRESSES}
    return [
        f"{path} is {code}"
        for path, code in server.statuses.items()
        if (code != 404 if path in off else code not in (200, 303))
    ]


def lines_of(folders: Sequence[str]) -> int:
    """Return the number of lines of Python below folders of the sources."""
    files = (file for folder in folders for file in (ROOT / "src" / folder).rglob("*.py"))
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


def command_problems(source: Path) -> list[str]:
    """Return what is wrong with the help pages of the command line."""
    wrong = []
    for words in (["--help"], ["list", "--help"], ["server", "start", "--help"]):
        done = subprocess.run(
            [sys.executable, "-m", "limnos.cli.main", *words],
            env={**os.environ, "PYTHONPATH": str(source)},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode or not done.stdout or done.stderr:
            wrong.append(f"limnos {' '.join(words)}: exit code {done.returncode}: {done.stderr[-500:]}")
    return wrong


def print_start(name: str, server: Start, wrong: Sequence[str]) -> None:
    """Print the line of a started server."""
    print(f"{name:<24} {server.cpu_s:5.2f} s CPU {server.memory_mb:5} MB  {'; '.join(wrong) or 'ok'}", flush=True)


def main() -> int:
    """Run the servers and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rooms", nargs="*")
    known = sorted(each.parent.name for each in (ROOT / "src/limnos/rooms").glob("*/manifest.py"))
    chosen = parser.parse_args().rooms or known
    lines = {room: lines_of(folders_of(room)) for room in known}
    print(f"{'kernel':<24} {lines_of(['limnos']) - sum(lines.values()):7} lines")
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source)
        start(source)  # compiles the modules
        base = start(source)
        print_start("all rooms", base, problems("", base))
        failures += len(problems("", base))
        for room in chosen:
            print(f"{room:<24} {lines[room]:7} lines")
            switched_off = start(source, LIMNOS__ROOMS__OFF=room)
            wrong = {"off": problems(room, switched_off)}
            print_start(f"{room} off", switched_off, wrong["off"])
            with without(source, folders_of(room), away=Path(folder) / "away"):
                deleted = start(source)
                wrong["deleted"] = [*problems(room, deleted), *command_problems(source)]
            print_start(f"{room} deleted", deleted, wrong["deleted"])
            failures += sum(map(len, wrong.values()))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
