"""`python -m conformance.engines [ENGINE…]`: other engines, as they come, against a server with access control on.

Job: start a server, make a table and a reader of it, run each engine's checks in turn, print the score. May import the
client, the demo's server starter and this package. One engine at a time: they are large. Downloads (1.2 GB in all, Trino
most of it) are kept in `limnos/conformance` of the XDG cache.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from conformance.engines import chdb, duck, flink, trino
from conformance.engines.checks import Check, Lake, as_json, as_text
from limnos.client import Client
from limnos.model.errors import LimnosError
from limnos.pipeline.demo.server import running_server

OUTPUT = Path(__file__).parents[2] / "conformance-out"
ENGINES: dict[str, Callable[[Lake], list[Check]]] = {
    "duckdb": duck.run,
    "chdb": chdb.run,
    "flink": flink.run,
    "trino": trino.run,
}


def main(names: Sequence[str]) -> int:
    """Run and report; 0 when every check passed."""
    unknown = [name for name in names if name not in ENGINES]
    if unknown:
        sys.stderr.write(f"no engine {unknown[0]}: there are {', '.join(ENGINES)}\n")
        return 2
    checks: list[Check] = []
    OUTPUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="limnos-engines-", dir="/tmp") as folder:
        work = Path(folder)
        with running_server(work / "data", log=OUTPUT / "engines-server.log") as server:
            lake = furnish(server.uri, work)
            try:
                for name in names or ENGINES:
                    checks += ENGINES[name](lake)
            finally:
                for log in work.glob("*.log"):
                    (OUTPUT / log.name).write_bytes(log.read_bytes())
    (OUTPUT / "engines.json").write_text(as_json(checks), encoding="utf-8")
    print(as_text(checks))
    failed = sum(not check.passed for check in checks)
    print(f"{len(checks) - failed} of {len(checks)} checks passed; details: {OUTPUT.name}/engines.json and logs")
    return 1 if failed else 0


def furnish(uri: str, work: Path) -> Lake:
    """Make the namespace `open` with a table of two rows, a closed one, and a reader who may select in the first."""
    token = (work / "data" / "admin.token").read_text().strip()
    with Client(uri, token=token) as client:
        for name in ("main.open", "main.closed"):
            client.namespaces.create(name)
        client.users.add("rita")
        client.roles.create("readers")
        client.roles.allow("readers", ["use_catalog"], on="main", kind="catalog")
        client.roles.allow("readers", ["use_schema", "select_table"], on="main.open", kind="namespace")
        client.roles.grant_to_user("rita", ["readers"])
        reader = client.tokens.create(user="rita").token
    duck.fill(Lake(uri=uri, admin=token, reader=reader, work=work))
    return Lake(uri=uri, admin=token, reader=reader, work=work)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except LimnosError as error:
        sys.exit(f"conformance: {error}")
