# SPDX-License-Identifier: Apache-2.0
"""The server's part of the room `jobs`: rules of jobs, and the executor beside requests."""

from __future__ import annotations

from collections.abc import Coroutine

from limnos.app.room_parts import LoopStart
from limnos.config.settings import Settings
from limnos.rooms.jobs.app.executor import executor_of
from limnos.services.request.node_services import NodeServices
from limnos.services.runs.job_rules import JOB_RULES, JobRules


def job_rules_of(settings: Settings) -> JobRules:
    """Convert the job settings to `JobRules`."""
    jobs = settings.jobs
    return JobRules(
        enabled=jobs.executor == "local",
        allowed=jobs.allowed,
        environment=jobs.environment,
        spark_configs=jobs.spark_configs,
        waiting_max=jobs.waiting_max,
        pipelines=jobs.pipelines and jobs.network,
    )


def register_rules(services: NodeServices, settings: Settings) -> None:
    """Register the rules by which jobs are accepted."""
    JOB_RULES.put(services, job_rules_of(settings))


def executor_loop(start: LoopStart) -> Coroutine[object, object, None] | None:
    """Return the loop that runs jobs; None if the settings disable it. Raises CannotStart for a user that jobs cannot
    run as.
    """
    executor = executor_of(start.settings, start.services, bound=start.bound)
    return None if executor is None else executor.run()
