# SPDX-License-Identifier: Apache-2.0
"""Choice of a runner of operations by the URL of Spark.

Must not know the work of a runner.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from limnos.model.errors import BadRequest
from limnos.rooms.maintenance.engine.actions import SparkRunner
from limnos.rooms.maintenance.engine.connect import ConnectRunner
from limnos.rooms.maintenance.engine.restricted_files import RestrictedFileRunner, connect_to, thread_pool
from limnos.spark.cluster import EXECUTOR_WAIT_S
from limnos.spark.connect import SCHEME

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limnos.rooms.maintenance.engine.executor import OperationRunner
    from limnos.spark.files import SparkFiles


_MASTER: Final = re.compile(
    r"local(-cluster)?(\[[^]]+])?|yarn|k8s://\S+|sc://\S+|spark://[^\s,:]+:\d{1,5}(,[^\s,:]+:\d{1,5})*"
)


def runner_for(
    uri: str,
    *,
    metalake: str,
    master: str,
    config: Mapping[str, str] | None = None,
    ca_file: str | None = None,
    s3: bool = False,
    executor_wait_s: float = EXECUTOR_WAIT_S,
    files: SparkFiles | None = None,
) -> OperationRunner:
    """Return a runner of operations: a ConnectRunner for a `sc://` URL, else a SparkRunner that starts Spark for
    `master`. `files` are existing JAR archives and a Java runtime.

    Files for restricted users are written by tasks of a cluster, else by threads of this process.

    Raises BadRequest for an address that is not a Spark master, and for `ca_file` with a Spark Connect server, which
    has its own trust store.
    """
    if _MASTER.fullmatch(master) is None:
        raise BadRequest(
            f"'{master}' is not a Spark master: use local[2], spark://host:7077, yarn, k8s://… or sc://host:15002"
        )
    connect = connect_to(uri, metalake=metalake, ca_file=ca_file)
    if not master.startswith(SCHEME):
        runner = SparkRunner(
            uri,
            metalake=metalake,
            master=master,
            config=config,
            ca_file=ca_file,
            s3=s3,
            executor_wait_s=executor_wait_s,
            files=files,
        )
        has_workers = master != "local" and not master.startswith("local[")
        pool = runner.span_pool if has_workers else thread_pool(local_cores(master))
        return RestrictedFileRunner(runner, connect=connect, pool=pool)
    if ca_file is not None:
        raise BadRequest(
            "A Spark Connect server uses its own CA certificates: add the Limnos server's CA there, and leave"
            " --ca-file out"
        )
    others = ConnectRunner(
        uri, metalake=metalake, address=master, config=config, s3=s3, executor_wait_s=executor_wait_s
    )
    return RestrictedFileRunner(others, connect=connect, pool=thread_pool(local_cores(master)))


def local_cores(master: str) -> int:
    """Return the number of threads that a local Spark master has; that of this machine's cores for any other master."""
    number = re.fullmatch(r"local\[(\d{1,3})(,\d+)?]", master)
    if number is None:
        return 1 if master == "local" else os.cpu_count() or 1
    return max(1, int(number[1]))
