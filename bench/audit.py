"""`python -m bench.audit`: what the audit costs: commits and answers that are kept, without it, with that of changes, and whole.

Three servers over SQLite files of their own, asked in turn; CPU µs of the server per request, the best of the rounds. Prints and judges nothing. Linux only.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

from bench.cpu import TreeCpu
from bench.load import Generator, Load
from bench.workers import SCHEMA, ask, served

CONNECTIONS = 16
NAMESPACES = "/iceberg/v1/lake.main/namespaces"
OFF = {"LIMNOS__AUDIT__CHANGES": "false", "LIMNOS__AUDIT__REFUSALS": "off"}
MODES = {
    "off": OFF,
    "changes": {"LIMNOS__AUDIT__REFUSALS": "off"},
    "whole": {"LIMNOS__AUDIT__READS": "whole", "LIMNOS__AUDIT__REFUSALS_PER_S_MAX": "1000000"},
}


class Asked:
    """A server, and what is asked of it."""

    def __init__(self, data: Path, pid: int, uri: str) -> None:
        self.pid, self.uri = pid, uri
        self.token = (data / "admin.token").read_text().strip()
        self.best: dict[str, float] = {}
        self._revision = 0
        ask(uri, self.token, NAMESPACES, {"namespace": ["a"]})
        for number in range(CONNECTIONS):
            ask(uri, self.token, f"{NAMESPACES}/a/tables", {"name": f"t{number}", "schema": SCHEMA})

    def requests(self, title: str) -> tuple[bytes, ...]:
        """Spell what each connection sends, in turn; a commit that changes nothing would be none, so each sets another value than the one before."""
        made = []
        for number, value in ((number, value) for value in ("v", "w") for number in range(CONNECTIONS)):
            method, body, proof = ("HEAD", b"", f"Bearer {self.token}")
            if title == "commit":
                update = {"action": "set-properties", "updates": {"k": value}}
                method, body = "POST", json.dumps({"requirements": [], "updates": [update]}).encode()
            head = f"{method} {NAMESPACES}/a/tables/t{number} HTTP/1.1\r\nHost: {urlsplit(self.uri).netloc}\r\nAuthorization: {proof}\r\n"
            more = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
            made.append(f"{head}{more}\r\n".encode() + body)
        return tuple(made)

    def measure(self, title: str, *, seconds: float) -> None:
        """Ask for some seconds, and keep the cheapest time."""
        parts = urlsplit(self.uri)
        load = Load(
            host=parts.hostname or "", port=parts.port or 0, requests=self.requests(title), connections=CONNECTIONS,
            once=False, warm=20, seconds=seconds, count_max=10**9,
        )  # fmt: skip
        with Generator() as generator:
            answered, (used_ns,) = generator.run(load, [TreeCpu([self.pid])])
        cost = used_ns / 1000 / answered.count
        self.best[title] = min(self.best.get(title, cost), cost)

    def tell(self) -> tuple[float, int]:
        """Commit for a moment, and let that become lines: what that costs for each, and how many they are."""
        self._newest()
        self.measure("commit", seconds=1.0)
        clock = TreeCpu([self.pid])
        before, began = self._revision, clock.look()
        self._newest()
        lines = self._revision - before
        return (clock.look() - began) / 1000 / max(1, lines), lines

    def _newest(self) -> None:
        """Look at the newest change of the audit, which makes lines of all."""
        found = json.loads(ask(self.uri, self.token, "/api/limnos/v1/audit?limit=1&action=commit"))["lines"]
        self._revision = int(found[0]["revision"]) if found else 0


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.audit", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--rounds", type=int, default=4)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="limnos-bench-", dir=".") as folder, ExitStack() as stack:
        servers: dict[str, Asked] = {}
        for mode, env in MODES.items():
            data = Path(folder) / mode
            pid, uri, _ = stack.enter_context(served(data, 1, env=env))
            servers[mode] = Asked(data, pid, uri)
        for _ in range(given.rounds):
            for title in ("commit", "head"):
                for server in servers.values():
                    server.measure(title, seconds=given.seconds)
        for title in ("commit", "head"):
            costs = {mode: server.best[title] for mode, server in servers.items()}
            print(
                f"{title}: "
                + ", ".join(f"{mode} {cost:.1f} ({cost / costs['off']:.2f} ×)" for mode, cost in costs.items())
            )
        cost, lines = servers["changes"].tell()
        print(f"a change becomes a line for {cost:.1f} ({lines} of them)")


if __name__ == "__main__":
    main()
