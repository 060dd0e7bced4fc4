# SPDX-License-Identifier: Apache-2.0
"""Conversion of errors of Spark and Iceberg to the runner's errors.

Distinguishes wrong code, missing rights and an unreachable server, with a message without Java's stack trace. Must not
know steps.
"""

from __future__ import annotations

import re

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from limnos.model.errors import AuthenticationFailed, LimnosError, NoSpace, PermissionDenied, ServiceUnavailable
from limnos.pipeline.engine.user_code import python_cause
from limnos.pipeline.failures import StepAway, StepDenied, StepError, StepFailed

_DENIED = re.compile(r"ForbiddenException|NotAuthorizedException|Not authorized|\bForbidden\b")
_AWAY = re.compile(
    r"ServiceUnavailableException|ServiceFailureException|CommitStateUnknownException|Connection refused|Connect(ion)?"
    r" to .* failed"
    r"|HttpHostConnectException|NoHttpResponseException|Connection reset|SocketTimeoutException|SocketException"
    r"|Error occurred while processing \w+ request|Connection closed|Broken pipe|StateUnknown"
)
_NO_SPACE = re.compile(
    r"No space left on device|[Dd]isk quota exceeded|has no (?:room|space) left|disk of the database is full"
)
"""Messages about a full server or disk. Spark wraps them like an unreachable server, but waiting does not help."""
_HELD_LOST = re.compile(r"CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND|Checkpoint block rdd_\w+ not found")
"""Messages that staged rows were lost with their executors."""
_MESSAGE_MAX = 2000
_STACK = re.compile(
    r"\n\s*(at |== |\tat )|\nJVM stacktrace|\nDriver stacktrace|;?\n'?[A-Z][^\n]*\n[ :]*\+- ", re.MULTILINE
)
"""The beginning of a stack trace, or of a plan: its first operator is followed by a line with `+-`."""
_FRAME = re.compile(r"^(?:org|java|javax|scala|io|com)\.[\w.$]+(?:Exception|Error)?: ")


def failure_of(error: BaseException) -> StepError:
    """Convert an exception to a StepError, whose class determines whether the runner retries."""
    if isinstance(error, StepError):
        return error
    if isinstance(error, (PermissionDenied, AuthenticationFailed)):
        return StepDenied(error.message)
    if isinstance(error, ServiceUnavailable) and not isinstance(error, NoSpace):
        return StepAway(error.message)
    if isinstance(error, LimnosError):
        return StepFailed(error.message)
    text = _text(error)
    message = python_cause(text) or _shorten_text(text)
    if _is_remote(error):
        if _DENIED.search(text):
            return StepDenied(message)
        if _NO_SPACE.search(text):
            return StepFailed(message)
        if _HELD_LOST.search(text):
            return StepAway("executors with rows of this step were lost")
        if _AWAY.search(text):
            return StepAway(message)
    return StepFailed(message)


def _is_remote(error: BaseException) -> bool:
    return isinstance(error, (PySparkException, Py4JError))


def _text(error: BaseException) -> str:
    if isinstance(error, Py4JJavaError):
        return _causes(error)
    if isinstance(error, (PySparkException, Py4JError)):
        return str(error)
    return f"{type(error).__name__}: {error}"


def _causes(error: Py4JJavaError) -> str:
    """Return the messages of a Java exception and its causes, the innermost first."""
    names: list[str] = []
    cause = error.java_exception
    while cause is not None and len(names) < 10:
        names.append(str(cause.toString()))
        cause = cause.getCause()
    return "\n".join(reversed(names))


def _shorten_text(text: str) -> str:
    """Return the text before the stack trace or the plan, at most `_MESSAGE_MAX` characters."""
    cut = _STACK.search(text)
    head = (text[: cut.start()] if cut else text).strip()
    return _FRAME.sub("", head)[:_MESSAGE_MAX]
