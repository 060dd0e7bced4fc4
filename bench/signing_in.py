"""`python -m bench.signing_in`: what a request costs by a token of an outside issuer, beside one by an API token, in one run.

HEAD of a table, with answers that are kept and without: CPU µs of the server per request, and the ratio of the two. Prints and judges nothing. Linux only.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from bench.workers import SCHEMA, ask, measured, served
from tests.issuer import AUDIENCE, issuing

CONNECTIONS = 16
ROUNDS = 5
NAMESPACES = "/iceberg/v1/lake.main/namespaces"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.signing_in", description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0)
    seconds = parser.parse_args().seconds
    for title, kept in (("answers kept", {}), ("no answer kept", {"LIMNOS__SERVER__KEPT_BYTES_MAX": "0"})):
        with issuing() as issuer, tempfile.TemporaryDirectory(prefix="limnos-bench-") as folder:
            oidc = {"LIMNOS__OIDC__ISSUER": issuer.url, "LIMNOS__OIDC__AUDIENCES": AUDIENCE}
            with served(Path(folder) / "data", 1, env={**kept, **oidc}) as (pid, uri, _):
                own = (Path(folder) / "data" / "admin.token").read_text().strip()
                outside = issuer.token("admin")
                ask(uri, own, NAMESPACES, {"namespace": ["a"]})
                ask(uri, own, f"{NAMESPACES}/a/tables", {"name": "t", "schema": SCHEMA})
                best: dict[str, float] = {}
                for _ in range(ROUNDS):
                    for token in (own, outside):
                        cost, _rate = measured(pid, uri, token, method="HEAD", connections=CONNECTIONS, seconds=seconds)
                        best[token] = min(best.get(token, cost), cost)
        print(
            f"HEAD table, {title}: {best[own]:.1f} µs by an API token, {best[outside]:.1f} by the issuer's ({len(outside)} bytes): "
            f"{best[outside] / best[own]:.2f} × (aim 1.1)"
        )


if __name__ == "__main__":
    main()
