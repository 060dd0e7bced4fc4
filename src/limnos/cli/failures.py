# SPDX-License-Identifier: Apache-2.0
"""Messages and exit codes of failed commands: the error, and the next step.

Must not know any command.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from limnos.cli.errors import StoppedError, UsageError
from limnos.cli.exit_codes import ExitCode
from limnos.cli.hints.arguments import hint_for_argument, hint_for_name_alone, message_for_argument
from limnos.cli.hints.failed_calls import hint_for, is_anonymous
from limnos.cli.hints.quoted_commands import with_plain_commands
from limnos.cli.hints.typed_command import TypedCommand
from limnos.cli.hints.values import hint_for_file
from limnos.cli.lookups import needs_extra, not_signed_in, unknown_token
from limnos.cli.output import Format, to_json, visible
from limnos.cli.visible_paths import hint_for_name, path_answer
from limnos.client.errors import ArgumentError, ClientError
from limnos.model import errors as taxonomy
from limnos.model.extras import extra_of, install_hint, missing_module_text
from limnos.names.errors import InvalidName

__all__ = [
    "CommandFailure",
    "ExitCode",
    "StoppedError",
    "UsageError",
    "failure_of",
    "render",
    "unexpected_failure",
    "usage",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandFailure:
    """A failure of a command to be printed: exit code, stable code, message, cause and hint. `details` are additional
    keys of its JSON form.
    """

    exit_code: ExitCode
    code: str
    message: str
    why: str | None = None
    hint: str | None = None
    details: Mapping[str, object] = field(default_factory=dict)


_BY_KIND = {
    "not-found": ExitCode.NOT_FOUND,
    "denied": ExitCode.DENIED,
    "conflict": ExitCode.CONFLICT,
    "unavailable": ExitCode.UNAVAILABLE,
}


_NO_PRINCIPAL = re.compile(r"(?:User|Group|Role) \S+ does not exist in ")
"""The beginning of messages about a missing user, group or role."""


def _of_reads(message: str, typed: TypedCommand) -> str:
    """Return a message without the advice to create what a command only reads or deletes."""
    if typed.words[:1] == ("job",):
        message = message.removesuffix(": see 'limnos list runs'").replace("Run ", "Job ", 1)
    is_grant = typed.words[:1] in {("grant",), ("create",), ("set",)}
    return message if is_grant else message.removesuffix(": create it first").removesuffix(": add it first")


def _names_user(typed: TypedCommand) -> bool:
    return any(token.partition("=")[0] in {"--user", "--as"} for token in typed.tokens)


def usage(error: UsageError) -> CommandFailure:
    """Build the failure of a command line that no command takes."""
    return CommandFailure(exit_code=ExitCode.USAGE, code="usage", message=error.message, hint=error.hint)


def failure_of(error: Exception, typed: TypedCommand) -> CommandFailure | None:
    """Convert an exception to a failure; None for an unexpected exception. `typed` is the command line."""
    if isinstance(error, ClientError):
        return _from_client(error, typed)
    if isinstance(error, UsageError):
        return usage(error)
    if isinstance(error, StoppedError):
        code = _BY_KIND.get(error.code, ExitCode.FAILED)
        return CommandFailure(exit_code=code, code=error.code, message=error.message, hint=error.hint)
    if isinstance(error, InvalidName):
        hint = hint_for_name(typed)
        if error.reason == "empty-name" and len(typed.path) == 1:  # the object of a kind that is in a catalog
            (name,) = typed.path
            message = f"'{name}' is too short: a path is catalog.namespace.name"
            hint = hint_for_name_alone(typed, name)
            return CommandFailure(exit_code=ExitCode.USAGE, code="usage", message=message, hint=hint)
        return CommandFailure(exit_code=ExitCode.USAGE, code="illegal-name", message=error.message, hint=hint)
    if isinstance(error, taxonomy.LimnosError):
        return _from_taxonomy(error, typed)
    if isinstance(error, ArgumentError):
        message = message_for_argument(str(error), typed)
        return CommandFailure(
            exit_code=ExitCode.USAGE, code="usage", message=message, hint=hint_for_argument(message, typed)
        )
    if isinstance(error, ModuleNotFoundError) and (extra := extra_of(error.name or "")) is not None:
        return CommandFailure(
            exit_code=ExitCode.FAILED,
            code="failed",
            message=missing_module_text(error.name or ""),
            hint=install_hint(extra),
        )
    if isinstance(error, OSError):
        return CommandFailure(exit_code=ExitCode.FAILED, code="failed", message=str(error), hint=_of_system(error))
    if isinstance(error, UnicodeDecodeError):
        return CommandFailure(
            exit_code=ExitCode.FAILED,
            code="failed",
            message=f"a file is not UTF-8 text: {error.reason} at byte {error.start}",
            hint="check that it is the right file",
        )
    if type(error).__module__ == "sqlite3":
        hint = "check the file's permissions, whether another program has locked it, and whether the disk is full"
        return CommandFailure(exit_code=ExitCode.FAILED, code="failed", message=f"a database file: {error}", hint=hint)
    return None


def unexpected_failure(error: Exception) -> CommandFailure:
    """Build the failure of an unexpected exception. The caller has printed its traceback."""
    splitlines = f"{type(error).__name__}: {str(error).strip() or 'no message'}".splitlines()[0]
    return CommandFailure(
        exit_code=ExitCode.FAILED,
        code="internal",
        message=f"an internal error of this program: {splitlines}",
        hint="please report it, with the lines above and the output of 'limnos --version'",
    )


_SYSTEM = {
    errno.ENOENT: "check the path",
    errno.EACCES: "give this user permission for it, or name another path",
    errno.EPERM: "give this user permission for it, or name another path",
    errno.EROFS: "the file system is read-only: name another path",
    errno.ENOSPC: "the disk is full: make room, or name another path",
    errno.EDQUOT: "the quota is used up: make room, or name another path",
    errno.EISDIR: "that is a directory: name a file",
    errno.ENOTDIR: "a part of the path is a file: name another path",
    errno.EEXIST: "it exists already: name another path",
    errno.EADDRINUSE: "another program listens on this port: end it, or choose another port",
    errno.ECONNREFUSED: "no program listens on this address: start the server, or correct the address",
    errno.EMFILE: "too many files are open: raise the limit with 'ulimit -n'",
}


def _of_system(error: OSError) -> str:
    """Return advice for an operating system error, by its errno."""
    if type(error).__module__ == "ssl":
        return "give the CA certificate with --ca-file, or correct the server's certificate"
    return _SYSTEM.get(error.errno or 0, "correct the cause, then repeat the command")


def render(failure: CommandFailure, output_format: Format) -> str:
    """Format a failure for standard error, in the output format of the results."""
    message = with_plain_commands(failure.message)
    hint = None if failure.hint is None else with_plain_commands(failure.hint)
    if output_format == "json":
        fields = {
            "code": failure.code,
            "message": message,
            "why": failure.why,
            "hint": hint,
            **failure.details,
        }
        entry = {key: value for key, value in fields.items() if value is not None}
        return to_json({"error": entry}, indent=-1)
    lines = [f"error: {message}"]
    if failure.why:
        lines.append(f"  why: {failure.why}")
    if hint:
        lines.append(f"  next: {hint}")
    return visible("\n".join(lines))


def _from_client(error: ClientError, typed: TypedCommand) -> CommandFailure:
    details = {"status": error.status or None, "request_id": error.request_id, "decision": error.decision}
    answer = path_answer(error, typed)
    is_unsigned = is_anonymous(error) and not _names_user(typed)
    message = not_signed_in() if is_unsigned else _of_reads(typed.add_catalog(error.message), typed)
    exit_code = _BY_KIND.get(error.kind, ExitCode.FAILED)
    if exit_code is ExitCode.FAILED and _NO_PRINCIPAL.match(error.message):
        exit_code = ExitCode.NOT_FOUND  # Gravitino's status for it is 400 in some calls and 404 in others
    message = "; ".join([message, *getattr(error, "__notes__", ())])
    if needs_extra(error):
        exit_code = ExitCode.FAILED
    message = unknown_token(error) or message
    return CommandFailure(
        exit_code=exit_code,
        code=error.code,
        message=message if answer is None else answer.message or message,
        hint=hint_for(error, typed) if answer is None else answer.hint,
        details=details,
    )


def _from_taxonomy(error: taxonomy.LimnosError, typed: TypedCommand) -> CommandFailure:
    codes: tuple[tuple[type[taxonomy.LimnosError], ExitCode], ...] = (
        (taxonomy.NotFound, ExitCode.NOT_FOUND),
        (taxonomy.PermissionDenied, ExitCode.DENIED),
        (taxonomy.AuthenticationFailed, ExitCode.DENIED),
        (taxonomy.AlreadyExists, ExitCode.CONFLICT),
        (taxonomy.NotEmpty, ExitCode.CONFLICT),
        (taxonomy.CommitConflict, ExitCode.CONFLICT),
        (taxonomy.ServiceUnavailable, ExitCode.UNAVAILABLE),
        (taxonomy.BadRequest, ExitCode.USAGE),
    )
    exit_code = next((code for kind, code in codes if isinstance(error, kind)), ExitCode.FAILED)
    if isinstance(error, taxonomy.CannotStart):
        return CommandFailure(
            exit_code=exit_code, code=error.code, message=error.message, why=error.why, hint=error.advice
        )
    if error.code == "config":
        hint = "correct it where it was set; 'limnos server config' lists all settings, without what is wrong here"
        return CommandFailure(exit_code=ExitCode.USAGE, code=error.code, message=error.message, hint=hint)
    return CommandFailure(
        exit_code=exit_code, code=error.code, message=error.message, hint=hint_for_file(error.message, typed)
    )
