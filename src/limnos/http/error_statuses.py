# SPDX-License-Identifier: Apache-2.0
"""HTTP statuses of errors in Limnos' own interfaces: the admin API and the console.

Must not know protocols.
"""

from __future__ import annotations

from limnos.model import errors
from limnos.model.errors import LimnosError
from limnos.names.errors import InvalidName

_STATUSES: tuple[tuple[type[LimnosError], int], ...] = (
    (InvalidName, 400),
    (errors.PositionPruned, 410),  # before BadRequest, of which it is a subclass
    (errors.BadRequest, 400),
    (errors.AuthenticationFailed, 401),
    (errors.PermissionDenied, 403),
    (errors.NotFound, 404),
    (errors.MissingFile, 404),
    (errors.UnsupportedOperation, 405),
    (errors.AlreadyExists, 409),
    (errors.NotEmpty, 409),
    (errors.InUse, 409),
    (errors.NotInUse, 409),
    (errors.CommitConflict, 409),
    (errors.RunConflict, 409),
    (errors.RevisionEnded, 409),
    (errors.InvalidTable, 409),
    (errors.TooSlow, 408),
    (errors.TooLarge, 413),
    (errors.WrongMediaType, 415),
    (errors.MisdirectedRequest, 421),
    (errors.PropertyConflict, 422),
    (errors.HeadTooLarge, 431),
    (errors.StateUnknown, 500),
    (errors.StorageMisconfigured, 400),
    (errors.StorageFailed, 502),
    (errors.TooManyAttempts, 429),
    (errors.ServiceUnavailable, 503),
)


def status_of(error: LimnosError) -> int:
    """Return the HTTP status of an error by its class: 400 for an invalid name, 500 for a class without a status."""
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)
