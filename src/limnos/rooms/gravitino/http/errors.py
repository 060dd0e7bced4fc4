# SPDX-License-Identifier: Apache-2.0
"""Gravitino's error body: code, Java exception name and HTTP status for each kind of error (ErrorConstants 1.3).

Must not know resources: the first sentence of a message comes from the error's context. docs/decisions/0005 defines
when a refusal is 403 and when 404.
"""

from __future__ import annotations

from typing import Final

from limnos.http.refusals import hidden_metalake, lacks_credential, visible_decision_json
from limnos.http.response import NO_ENCODINGS, Response, json_response
from limnos.model import errors
from limnos.model.errors import LimnosError
from limnos.model.kind_table import KIND_TABLE
from limnos.names.errors import InvalidName, Reason

SUBJECT = "subject"
"""The key in an error's context of the sentence "Failed to operate …"."""

_WORDS = {kind.word: row.gravitino_error for kind, row in KIND_TABLE.items() if row.gravitino_error} | {
    "object": "MetadataObject",
    "model_version": "ModelVersion",
    "model_version_uri": "ModelVersionURIName",
    "location_name": "LocationName",
}
"""The name of each kind in Gravitino's exception names."""

_ALREADY_EXISTS = {
    "tag_attachment": "TagAlreadyAssociatedException",
    "policy_attachment": "PolicyAlreadyAssociatedException",
    "alias": "ModelVersionAliasesAlreadyExistException",
}
"""The exception names for things that exist already and are not objects."""

_IDENTIFIER_REASONS: frozenset[Reason] = frozenset(
    {"ambiguous", "bad-escape", "bad-quotes", "bad-utf8", "not-nested", "too-few-parts", "too-many-parts"}
)
"""Reasons for which an identifier is ambiguous or unreadable. All other reasons mean that a name violates a rule."""


class UnknownVersion(errors.UnsupportedOperation):
    """Raised if the media type requests an unsupported version of the protocol; the status is 406."""


_TABLE: tuple[tuple[type[LimnosError], int, int, str], ...] = (
    (errors.IllegalPrivilege, 400, 1001, "IllegalPrivilegeException"),
    (errors.IllegalRole, 400, 1001, "IllegalRoleException"),
    (errors.IllegalObject, 400, 1001, "IllegalMetadataObjectException"),
    (errors.IllegalStatistic, 400, 1001, "IllegalStatisticNameException"),
    (errors.BadRequest, 400, 1001, "IllegalArgumentException"),
    (errors.PropertyConflict, 400, 1001, "IllegalArgumentException"),
    (errors.TooSlow, 408, 1001, "IllegalArgumentException"),
    (errors.TooLarge, 413, 1001, "IllegalArgumentException"),
    (errors.WrongMediaType, 415, 1001, "IllegalArgumentException"),
    (errors.MisdirectedRequest, 421, 1001, "IllegalArgumentException"),
    (errors.HeadTooLarge, 431, 1001, "IllegalArgumentException"),
    (errors.MissingFile, 404, 1003, "NotFoundException"),
    (errors.InvalidTable, 409, 1002, "RuntimeException"),
    (UnknownVersion, 406, 1006, "UnsupportedOperationException"),
    (errors.UnsupportedOperation, 405, 1006, "UnsupportedOperationException"),
    (errors.PermissionDenied, 403, 1008, "ForbiddenException"),
    (errors.AuthenticationFailed, 401, 1011, "UnauthorizedException"),
    (errors.PipelineBusy, 409, 1010, "InUseException"),
    (errors.RunConflict, 409, 1012, "OptimisticLockException"),
    (errors.CommitConflict, 409, 1012, "OptimisticLockException"),
    (errors.StorageMisconfigured, 400, 1001, "IllegalArgumentException"),
    (errors.StorageFailed, 502, 1007, "ConnectionFailedException"),
    (errors.StateUnknown, 500, 1002, "RuntimeException"),
    (errors.TooManyAttempts, 429, 1002, "RuntimeException"),
    (errors.ServiceUnavailable, 503, 1002, "RuntimeException"),
)
_BY_KIND: tuple[tuple[type[LimnosError], int, int, str], ...] = (
    (errors.NotFound, 404, 1003, "NoSuch{}Exception"),
    (errors.AlreadyExists, 409, 1004, "{}AlreadyExistsException"),
    (errors.NotEmpty, 409, 1005, "NonEmpty{}Exception"),
    (errors.NotInUse, 409, 1009, "{}NotInUseException"),
    (errors.ProtectedObject, 409, 1010, "Protected{}Exception"),
    (errors.InUse, 409, 1010, "{}InUseException"),
)

_MISSING: Final = (
    "No credential was sent: send a token as 'Authorization: Bearer lim_…', or as the password of Basic, in Python"
    " auth_data_provider=BasicAuthProvider(USER, TOKEN); make one with 'limnos create token'"
)


def error_response(failure: LimnosError) -> Response:
    """Build Gravitino's JSON body and status for an error."""
    error = hidden_metalake(failure)
    status, _, _ = classify(error)
    headers: tuple[tuple[bytes, bytes], ...] = ()
    if isinstance(error, errors.ServiceUnavailable):
        headers = ((b"retry-after", b"%d" % error.retry_after_s),)
    if status == 415:
        headers = NO_ENCODINGS
    if status == 401:
        headers = ((b"www-authenticate", b"Bearer"),)  # naming Basic would make browsers ask for a password
    body = error_body(error)
    if lacks_credential(failure):
        body["message"] = f"{body['message']}. {_MISSING}"
    return json_response(body, status, headers)


def error_body(error: LimnosError) -> dict[str, object]:
    """Encode an error as Gravitino's body. The body of a denied access also has the access decision, which clients
    ignore.
    """
    _, code, name = classify(error)
    body: dict[str, object] = {"code": code, "type": name, "message": _message(error)}
    decision = visible_decision_json(error)
    return body if decision is None else {**body, "decision": decision}


def classify(error: LimnosError) -> tuple[int, int, str]:
    """Return the HTTP status, Gravitino's code and the simple name of the Java exception."""
    if isinstance(error, InvalidName):
        by_identifier = error.reason in _IDENTIFIER_REASONS
        return 400, 1001, "IllegalNameIdentifierException" if by_identifier else "IllegalArgumentException"
    if isinstance(error, errors.NotFound) and error.kind not in _WORDS:
        return 404, 1003, "NotFoundException"
    if isinstance(error, errors.AlreadyExists) and error.kind in _ALREADY_EXISTS:
        return 409, 1004, _ALREADY_EXISTS[error.kind]
    for kind, status, code, name in _BY_KIND:
        if isinstance(error, kind):
            return status, code, name.format(_WORDS.get(getattr(error, "kind", ""), "Entity"))
    for kind, status, code, name in _TABLE:
        if isinstance(error, kind):
            return status, code, name
    return 500, 1002, "RuntimeException"


def _message(error: LimnosError) -> str:
    """Return the operation's sentence, then the reason, with doubled percent signs: clients use it as a printf format.

    A denied access has no such sentence, as in Gravitino, where a filter before the operation refuses requests.
    Decisions already have doubled percent signs.
    """
    text = str(error) or "no reason was given"
    subject = error.context.get(SUBJECT)
    if subject and not isinstance(error, (errors.PermissionDenied, errors.AuthenticationFailed)):
        text = f"{subject}, reason [{text}]"
    return text.replace("%%", "%").replace("%", "%%")
