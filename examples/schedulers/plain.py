# SPDX-License-Identifier: Apache-2.0
"""A run as a plain function: a notebook calls it, and the other examples for schedulers wrap it.

    python examples/schedulers/plain.py pipeline.yaml --uri http://127.0.0.1:8090 --token-file limnos-data/admin.token

Needs only `limnos[spark]`; the server stores the run, so it can be inspected from any machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from limnos.pipeline import load
from limnos.spark import session


def publish(
    file: str | Path, *, uri: str, token: str, parameters: Mapping[str, object] | None = None, master: str = "local[*]"
) -> dict[str, object]:
    """Run the pipeline and publish it; returns the values that a scheduler stores. Raises RunFailed with advice."""
    spark = session(uri, token=token, master=master, app_name=Path(file).stem)
    ended = load(file).run(spark, parameters=parameters).require()
    return {"run": ended.run, "state": ended.state, "rows": ended.rows, "revision": ended.revision}


def main(arguments: list[str] | None = None) -> dict[str, object]:
    """Read the command line, publish, print the result."""
    parser = argparse.ArgumentParser(description="Run a pipeline from Python")
    parser.add_argument("file")
    parser.add_argument("--uri", default="http://127.0.0.1:8090")
    parser.add_argument("--token-file", type=Path, required=True)
    parser.add_argument("--master", default="local[*]")
    options = parser.parse_args(arguments)
    outcome = publish(
        options.file, uri=options.uri, token=options.token_file.read_text().strip(), master=options.master
    )
    print(outcome)
    return outcome


if __name__ == "__main__":
    main()
