# SPDX-License-Identifier: Apache-2.0
"""Reasons for the failure of a run: the reason to report, and advice for the user.

Converts the errors of steps to an `EndReason` and a message. Must not know Spark or change anything at the server.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from limnos.client import Client
from limnos.client.errors import ClientError, DeniedError, NoSpaceError, UnavailableError
from limnos.pipeline.declaration import StepDeclaration
from limnos.pipeline.failures import DataBroken, OutputGone, StepAway, StepDenied, StepError, StepFailed
from limnos.pipeline.outcomes import StepOutcome
from limnos.pipeline.rights import commands_text, grants_lacking_now
from limnos.pipeline.run.attempt import AttemptWork
from limnos.pipeline.run.outputs import dropped_output_messages
from limnos.pipeline.run.result import EndReason
from limnos.pipeline.side_tables import tables_of

logger = logging.getLogger(__name__)


def error_text(error: BaseException) -> str:
    """Return the message of an error of this package or the client, or the text of any other error."""
    return str(getattr(error, "message", "") or error)


def end_reason_of(errors: list[BaseException]) -> EndReason:
    """Choose the reason to report if several steps failed. In order of precedence: an unreachable server, a missing
    right, a dropped output, an error of code, a broken expectation.
    """
    if any(isinstance(error, (StepAway, UnavailableError)) and not isinstance(error, NoSpaceError) for error in errors):
        return EndReason.AWAY
    if any(isinstance(error, (StepDenied, DeniedError)) for error in errors):
        return EndReason.DENIED
    if any(isinstance(error, OutputGone) for error in errors):
        return EndReason.MOVED
    if all(isinstance(error, DataBroken) for error in errors):
        return EndReason.DATA
    return EndReason.CODE


def missing_grants(client: Client, work: AttemptWork, *, names: Iterable[str]) -> str:
    """Return the missing grants for the tables of the steps `names` as text; empty if none is missing or they cannot be
    determined.
    """
    steps = {step.name: step for step in work.steps}
    written_tables = [table for name in names for table in tables_of(work.pipeline, steps[name])]
    read = [pin.table for pin in work.pins.values() if pin.table is not None]
    results = [steps[each].table for name in names for each in work.needs[name] if each in steps]
    try:
        lines = grants_lacking_now(client, read=[*read, *results], written=written_tables)
    except ClientError as error:
        logger.debug("the missing privileges cannot be determined: %s", error)
        return ""
    return f"; {commands_text(lines)}" if lines else ""


def explain_failure(
    client: Client, work: AttemptWork, *, step: StepDeclaration, outcomes: Mapping[str, StepOutcome], error: StepError
) -> StepError:
    """Return an error that names the dropped or renamed table if that caused `error`, else `error`. Spark only reports
    missing files.
    """
    if not isinstance(error, StepFailed):
        return error
    branches = [branch for name in work.needs[step.name] if name in outcomes for branch in outcomes[name].branches]
    written_tables = tables_of(work.pipeline, step)
    try:
        messages = dropped_output_messages(
            client, work.outputs, written=written_tables, branches=branches, message=error.message
        )
    except ClientError as failure:
        logger.debug("the state of the tables of step %s cannot be determined: %s", step.name, failure)
        return error
    return OutputGone(f"{'; '.join(messages)} ({error.message})") if messages else error
