"""The one taxonomy of failures, with two faces: a message for the caller, context for the log.

Raise the narrowest class here; HTTP status, protocol code and body shape are given by `http` at the last step and
never here. May import nothing but the standard library.
"""

from __future__ import annotations

from copy import copy
from typing import ClassVar, Self


class LimnosError(Exception):
    """A failure that a caller can be told about.

    `message` is public: what is wrong, on what, what to do. `context` is for the log only. `code` is stable.
    """

    code: ClassVar[str] = "internal"

    def __init__(self, message: str, **context: object) -> None:
        super().__init__(message)
        self.message = message
        self.context = context

    def __reduce__(self) -> tuple[object, ...]:
        """Copy and pickle every field. Exception's own way calls the constructor, which may require keywords."""
        return _restore, (type(self), {**self.__dict__, "args": self.args})

    def with_message(self, message: str) -> Self:
        """Return a copy of the same class with another message; all other fields are kept."""
        changed = copy(self)
        changed.message, changed.args, changed.context = message, (message,), dict(self.context)
        return changed


def _restore(cls: type[LimnosError], fields: dict[str, object]) -> LimnosError:
    """Make an error without calling its constructor."""
    made = cls.__new__(cls)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


class BadRequest(LimnosError):
    """The request itself is wrong: malformed, unknown field, illegal name, unknown update."""

    code = "bad-request"


class IllegalName(BadRequest):
    """A name breaks a rule of the tree or of the spelling it came in."""

    code = "illegal-name"


class IllegalPrivilege(BadRequest):
    """A privilege that does not bind to the object, or appears both allowed and denied."""

    code = "illegal-privilege"


class IllegalRole(BadRequest):
    """A role named in a grant does not exist."""

    code = "illegal-role"


class IllegalObject(BadRequest):
    """An object named in a new role does not exist or is of the wrong type."""

    code = "illegal-object"


class IllegalStatistic(BadRequest):
    """A statistic's name is not one that somebody may write."""

    code = "illegal-statistic"


class OutsideWriter(BadRequest):
    """A commit of others to the table of a dataset of SQL++ would break its keys or its declared types."""

    code = "outside-writer"


class OutsideRoots(BadRequest):
    """A location outside the catalog's allowed roots."""

    code = "outside-roots"


class SchemaMismatch(BadRequest):
    """Rows that do not have the columns of the table they are for."""

    code = "schema-mismatch"


class KeyReused(BadRequest):
    """An `Idempotency-Key` that its caller used for another request."""

    code = "idempotency-key-reused"


class PropertyConflict(LimnosError):
    """The same key is both set and removed."""

    code = "unprocessable"


class AuthenticationFailed(LimnosError):
    """No credential that can be verified: wrong, expired, revoked, malformed.

    `was_right`: the credential was once given out, and is void now; who sends it does not guess.
    """

    code = "unauthenticated"

    def __init__(self, message: str, *, was_right: bool = False, **context: object) -> None:
        super().__init__(message, **context)
        self.was_right = was_right


class PermissionDenied(LimnosError):
    """Known to the caller, but not allowed. Carries the decision when one was made."""

    code = "forbidden"

    def __init__(self, message: str, *, decision: object | None = None, **context: object) -> None:
        super().__init__(message, **context)
        self.decision = decision


class ObjectError(LimnosError):
    """A failure about an object. `kind` is the kind's name in lower case: metalake, catalog, namespace, table, user."""

    def __init__(self, message: str, *, kind: str, **context: object) -> None:
        super().__init__(message, **context)
        self.kind = kind


class NotFound(ObjectError):
    """Nothing has that name. `kind` is the kind's name in lower case: metalake, catalog, namespace, table, user."""

    code = "not-found"


class AlreadyExists(ObjectError):
    """The name is taken. `kind` is the kind of what holds it."""

    code = "already-exists"


class NotEmpty(ObjectError):
    """A container still has children. `kind` is the container's kind."""

    code = "not-empty"


class InUse(ObjectError):
    """A metalake or catalog is enabled; disable it first or force. `kind` is its kind."""

    code = "in-use"


class ProtectedObject(InUse):
    """An object is protected from being dropped, or lies below one that is so with everything in it. `kind` is its kind."""

    code = "protected"


class NotInUse(ObjectError):
    """A metalake or catalog is disabled. `kind` is its kind."""

    code = "not-in-use"


class UnsupportedOperation(LimnosError):
    """The operation exists, but not for this object or configuration."""

    code = "unsupported"


class CommitConflict(LimnosError):
    """A requirement of a commit failed, or its snapshot is behind: read again and rebuild. Nothing was committed."""

    code = "commit-conflict"


class LockLost(CommitConflict):
    """A statement's lock is not its own any more: its node was taken for dead. Nothing was changed."""

    code = "lock-lost"


class RunConflict(LimnosError):
    """A run of a pipeline is in a state from which what was asked does not follow. Nothing was changed."""

    code = "run-conflict"


class PipelineBusy(RunConflict):
    """A run of the pipeline is under way and somebody holds it: wait for it, or cancel it."""

    code = "pipeline-busy"


class AttemptSuperseded(RunConflict):
    """A process tells of a run under an attempt that is not the newest: another process has it now, and this one stops."""

    code = "attempt-superseded"


class StateUnknown(LimnosError):
    """The outcome of a commit is not known; files are kept."""

    code = "state-unknown"


class PositionPruned(BadRequest):
    """What comes after a position in the changes is not kept any longer, or the store was restored: start anew."""

    code = "pruned"


class MissingFile(LimnosError):
    """A metadata file that the store points to has vanished."""

    code = "missing-file"


class TooLarge(LimnosError):
    """The body is over the size limit."""

    code = "too-large"


class HeadTooLarge(LimnosError):
    """The address and headers of a request are over their limits."""

    code = "head-too-large"


class TooSlow(LimnosError):
    """A request whose head or body was not complete in time. Nothing was done about it."""

    code = "too-slow"


class MisdirectedRequest(LimnosError):
    """A request for a host name that this server does not answer to."""

    code = "misdirected"


class WrongMediaType(LimnosError):
    """A body of another kind than the route takes, by its Content-Type."""

    code = "wrong-media-type"


class ServiceUnavailable(LimnosError):
    """Certain that nothing happened; come again. `retry_after_s` is seconds."""

    code = "unavailable"

    def __init__(self, message: str, *, retry_after_s: int = 1, **context: object) -> None:
        super().__init__(message, **context)
        self.retry_after_s = retry_after_s


class TooManyAttempts(ServiceUnavailable):
    """Too many wrong credentials from one address: nothing was done."""

    code = "throttled"


class LockTimeout(ServiceUnavailable):
    """A lock could not be had in time: other statements hold it. Nothing was done."""

    code = "lock-timeout"


class NoSpace(ServiceUnavailable):
    """The storage or the database has no space left. Certain that nothing happened; only an operator can change it."""

    code = "no-space"


class CannotStart(LimnosError):
    """What keeps a server from starting: the message says what failed, `why` the cause, `advice` the next step."""

    code = "cannot-start"

    def __init__(self, message: str, *, why: str, advice: str) -> None:
        super().__init__(message)
        self.why = why
        self.advice = advice


class StartWarning(CannotStart):
    """What whoever starts a server must know, although it starts: the same three parts."""

    code = "start-warning"


class StorageFailed(LimnosError):
    """A store of files refused, and will again until someone changes its configuration or credentials."""

    code = "storage-failed"


class StorageMisconfigured(StorageFailed):
    """A catalog's secret is sealed under a key that this server does not have, or its settings lack a storage: no repetition mends it."""

    code = "storage-misconfigured"


class SourceFailed(StorageFailed):
    """The outside system that a catalog shows does not answer, or does not let this server in or do what was asked."""

    code = "source-failed"


class SourceRefused(SourceFailed):
    """The outside system does not let this server do what was asked: certain that nothing was changed."""

    code = "source-refused"


class InvalidTable(LimnosError):
    """A table's own files are not what they should be: there is no table, or none that can be read."""

    code = "invalid-table"


class StalePermit(Exception):
    """The permit's revisions or objects have moved since the decision: decide again. Never leaves `services`."""
