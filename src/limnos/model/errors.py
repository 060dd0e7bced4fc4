# SPDX-License-Identifier: Apache-2.0
"""The taxonomy of errors; its base and `InvalidName` are in `limnos.names`.

Each has a message for the caller, context for the log, and a stable code.

Must not know HTTP: `http` determines status, protocol code and body at the last step. Raise the narrowest class.
"""

from __future__ import annotations

import errno
from typing import Final

from limnos.names.errors import LimnosError as LimnosError

OUT_OF_DESCRIPTORS: Final = frozenset({errno.EMFILE, errno.ENFILE})
"""The error numbers of the operating system if no more files or sockets can be opened."""
DESCRIPTORS: Final = "The server is out of file descriptors"


class BadRequest(LimnosError):
    """The request itself is wrong: malformed, unknown field, illegal name, unknown update."""

    code = "bad-request"


class IllegalPrivilege(BadRequest):
    """A privilege cannot be granted on the object, or is both allowed and denied."""

    code = "illegal-privilege"


class IllegalRole(BadRequest):
    """A role named in a grant does not exist."""

    code = "illegal-role"


class IllegalObject(BadRequest):
    """An object named in a new role does not exist or is of the wrong type."""

    code = "illegal-object"


class IllegalStatistic(BadRequest):
    """Clients may not write a statistic of this name."""

    code = "illegal-statistic"


class OutsideWriter(BadRequest):
    """A commit by another client to the table of a SQL++ dataset would violate its keys or its declared types."""

    code = "outside-writer"


class OutsideRoots(BadRequest):
    """A location is outside the catalog's allowed roots."""

    code = "outside-roots"


class LocationTaken(BadRequest):
    """A location is at, above or below that of another object of the metalake.

    `holder_id` is that object. The message does not name it, because it may be hidden from the caller.
    """

    def __init__(self, message: str, *, holder_id: int, metalake: str, **context: object) -> None:
        super().__init__(message, **context)
        self.holder_id = holder_id
        self.metalake = metalake


class SchemaMismatch(BadRequest):
    """Rows do not have the columns of their table."""

    code = "schema-mismatch"


class KeyReused(BadRequest):
    """The caller used this `Idempotency-Key` for another request before."""

    code = "idempotency-key-reused"


class PropertyConflict(LimnosError):
    """A request both sets and removes the same property."""

    code = "unprocessable"


class AuthenticationFailed(LimnosError):
    """The request's credential is missing, wrong, expired, revoked or malformed.

    `was_right` means that the credential was valid once, so its sender is not guessing. `principal` is then the user or
    service account of the credential, for the audit; "" if the credential is in the request's header, or is nobody's.
    """

    code = "unauthenticated"

    def __init__(self, message: str, *, was_right: bool = False, principal: str = "", **context: object) -> None:
        super().__init__(message, **context)
        self.was_right = was_right
        self.principal = principal


class PermissionDenied(LimnosError):
    """The caller is authenticated but not authorized. Contains the access decision if one was made, else the id of the
    metalake whose disabled user the caller is.
    """

    code = "forbidden"

    def __init__(
        self, message: str, *, decision: object | None = None, metalake_id: int | None = None, **context: object
    ) -> None:
        super().__init__(message, **context)
        self.decision = decision
        self.metalake_id = metalake_id


class ObjectError(LimnosError):
    """An error about an object. `kind` is the kind's name in lower case: metalake, catalog, namespace, table, user."""

    def __init__(self, message: str, *, kind: str, **context: object) -> None:
        super().__init__(message, **context)
        self.kind = kind


class NotFound(ObjectError):
    """No object has that name. `kind` is the kind of the missing object."""

    code = "not-found"


class AlreadyExists(ObjectError):
    """The name is taken. `kind` is the kind of the existing object."""

    code = "already-exists"


class NotEmpty(ObjectError):
    """A container still has children. `kind` is the container's kind."""

    code = "not-empty"


class InUse(ObjectError):
    """A metalake or catalog cannot be dropped while it is enabled: disable it first, or force the drop.

    Or a user, group or role, while read restrictions name it; or a role of one user or group, while others have it.
    `kind` is its kind.
    """

    code = "in-use"


class ProtectedObject(InUse):
    """The object, or a container that protects everything in it, is protected from drops.

    `kind` is the kind of that object.
    """

    code = "protected"


class NotInUse(ObjectError):
    """A metalake or catalog is disabled. `kind` is its kind."""

    code = "not-in-use"


class UnsupportedOperation(LimnosError):
    """The operation exists, but not for this object or configuration."""

    code = "unsupported"


class ConnectorMissing(UnsupportedOperation):
    """This server cannot call the external system of a catalog: its connector is not installed, cannot be used, or is
    switched off.
    """


class CommitConflict(LimnosError):
    """A requirement of a commit failed, or its snapshot is behind the table: the client must load the table and rebuild
    the commit. Nothing was committed.
    """

    code = "commit-conflict"


class LockLost(CommitConflict):
    """A statement no longer holds its lock, because the lease of its node expired. Nothing was changed."""

    code = "lock-lost"


class RunConflict(LimnosError):
    """The state of a run does not allow the requested change. Nothing was changed."""

    code = "run-conflict"


class PipelineBusy(RunConflict):
    """Another run of the pipeline has not ended: the caller must wait for it, or cancel it."""

    code = "pipeline-busy"


class AttemptSuperseded(RunConflict):
    """A process reported about a run under an old attempt number.

    Another process executes the run now, so the reporter must stop.
    """

    code = "attempt-superseded"


class RevisionEnded(CommitConflict):
    """The revision at which a reader reads a table in parts can no longer be read, or the reader's rights have changed
    since: the reader must read the whole table again.
    """

    code = "revision-ended"


class StateUnknown(LimnosError):
    """The outcome of a change is unknown, because its response was lost. Files of a commit must not be deleted."""

    code = "state-unknown"


class PositionPruned(BadRequest):
    """The changes after a feed position have been deleted, or the store was restored: the client must start again from
    the current state.
    """

    code = "pruned"


class MissingFile(LimnosError):
    """A file that the store or a request references does not exist, such as a metadata file."""

    code = "missing-file"


class TooLarge(LimnosError):
    """A request body or a file exceeds the size limit."""

    code = "too-large"


class HeadTooLarge(LimnosError):
    """The request line or the headers of a request exceed their size limits."""

    code = "head-too-large"


class TooSlow(LimnosError):
    """The head or body of a request was not complete in time. It was not processed."""

    code = "too-slow"


class MisdirectedRequest(LimnosError):
    """The request names a host that this server does not serve."""

    code = "misdirected"


class WrongMediaType(LimnosError):
    """The route does not accept the Content-Type of the body."""

    code = "wrong-media-type"


class ServiceUnavailable(LimnosError):
    """A temporary failure: nothing was changed, and the client may retry after `retry_after_s` seconds."""

    code = "unavailable"

    def __init__(self, message: str, *, retry_after_s: int = 1, **context: object) -> None:
        super().__init__(message, **context)
        self.retry_after_s = retry_after_s


class TooManyAttempts(ServiceUnavailable):
    """Too many requests with wrong credentials came from one IP address. The request was not processed."""

    code = "throttled"


class LockTimeout(ServiceUnavailable):
    """Other statements held a lock until the deadline. Nothing was changed."""

    code = "lock-timeout"


class NoSpace(ServiceUnavailable):
    """The storage or the database is full. Nothing was changed; an operator must free space."""

    code = "no-space"


class StoreDamaged(LimnosError):
    """The store's file or database is damaged, or a stored document is not what was written. Nothing was changed.

    Retries do not help: an operator must check the store and restore a backup.
    """

    code = "store-damaged"


class CannotStart(LimnosError):
    """The server cannot start. The message says what failed, `why` the cause, `advice` the next step."""

    code = "cannot-start"

    def __init__(self, message: str, *, why: str, advice: str) -> None:
        super().__init__(message)
        self.why = why
        self.advice = advice


class StartWarning(CannotStart):
    """A problem that the operator must know although the server starts.

    It has message, `why` and `advice`, like `CannotStart`.
    """

    code = "start-warning"


class StorageFailed(LimnosError):
    """An object store or file system refused a request. Retries fail until configuration or credentials are changed."""

    code = "storage-failed"


class StorageMisconfigured(StorageFailed):
    """A catalog's secret is encrypted with a key that this server lacks, or its named storage is not in the settings.

    Retries do not help.
    """

    code = "storage-misconfigured"


class SourceFailed(StorageFailed):
    """The external system of a catalog does not answer, rejects the server's credentials, or failed the request."""

    code = "source-failed"


class SourceRefused(SourceFailed):
    """The external system does not allow this server the operation. Nothing was changed, for certain."""

    code = "source-refused"


class SourceLoop(SourceFailed):
    """The external system of a catalog passes requests on to this server again. Nothing was changed, for certain."""

    code = "source-loop"


class InvalidTable(LimnosError):
    """Metadata files of a table are missing or malformed."""

    code = "invalid-table"


class StalePermit(Exception):
    """The permit's access revisions or objects have changed since the decision: the request must decide again.

    Never leaves `services`.
    """


class MetalakeLockRequired(StalePermit):
    """The mutation of a catalog must write to its metalake, too: the request submits it again with the metalake's lock.

    Never leaves `services`.
    """
