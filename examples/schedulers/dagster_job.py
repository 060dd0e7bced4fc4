# SPDX-License-Identifier: Apache-2.0
"""The run of `plain.py` from Dagster: an op that calls the plain function, and reports the run to Dagster."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from plain import publish


def publish_day(day: str, *, file: str = "pipeline.yaml") -> dict[str, object]:
    """Publish one day; the returned value is the op's metadata."""
    token = Path(os.environ["LIMNOS_TOKEN_FILE"]).read_text().strip()
    return publish(
        file, uri=os.environ.get("LIMNOS_URI", "http://127.0.0.1:8090"), token=token, parameters={"day": day}
    )


def job() -> object:
    """Return the job; Dagster finds it by the name below."""
    from dagster import OpExecutionContext, RetryPolicy, job, op

    @op(config_schema={"day": str}, retry_policy=RetryPolicy(max_retries=2))
    def publish_one(context: OpExecutionContext) -> None:
        context.add_output_metadata(publish_day(context.op_config["day"]))

    @job
    def nyc_flights() -> None:
        publish_one()

    return nyc_flights


try:
    nyc_flights = job()
except ModuleNotFoundError:  # imported without Dagster, as by its tests
    nyc_flights = None
