# SPDX-License-Identifier: Apache-2.0
"""Maps errors of a Kafka cluster to the server's errors, by Kafka's error codes.

Must not know the request. If the request is at fault, the error has the broker's message. Errors of connections and
logins have no details: hosts and user names are only logged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from confluent_kafka import KafkaError, KafkaException

from limnos.model import errors

_MISSING: Final = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.UNKNOWN_TOPIC_ID})
_CALLERS: Final = frozenset(
    {
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.INVALID_CONFIG,
        KafkaError.INVALID_PARTITIONS,
        KafkaError.INVALID_REPLICATION_FACTOR,
        KafkaError.INVALID_REPLICA_ASSIGNMENT,
        KafkaError.INVALID_REQUEST,
        KafkaError.POLICY_VIOLATION,
    }
)
_NOT_ALLOWED: Final = frozenset({KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED})
NOT_IN: Final = frozenset(
    {
        KafkaError._AUTHENTICATION,  # noqa: SLF001
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
        KafkaError._SSL,  # noqa: SLF001 - the library's own names
    }
)
"""Errors that mean that the cluster refuses the client's login."""
_BUSY: Final = frozenset(
    {
        KafkaError.NOT_CONTROLLER,
        KafkaError.THROTTLING_QUOTA_EXCEEDED,
        KafkaError.REASSIGNMENT_IN_PROGRESS,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.LEADER_NOT_AVAILABLE,
    }
)
"""Errors that mean that the cluster is busy; nothing was changed."""
_TEXT_MAX: Final = 300


@contextmanager
def translate_kafka_errors(
    about: str, *, reason: Callable[[], KafkaError | None], changes: bool = False
) -> Iterator[None]:
    """Translate the client's errors in the body to the server's errors.

    Args:
        about: A description of the object for messages, such as `Topic "a"`.
        reason: Returns the library's last error, if any.
        changes: Whether the body makes a change; a missing response then raises StateUnknown.
    """
    try:
        yield
    except KafkaException as error:
        raise _error(error.args[0], about, changes=changes, reason=reason()) from error
    except TimeoutError as error:
        raise _silence(about, changes=changes, detail=_detail(reason())) from error
    except (TypeError, ValueError) as error:  # raised when the library validates its arguments
        raise errors.BadRequest(f"{about}: {_short(str(error))}") from error


def _error(error: KafkaError, about: str, *, changes: bool, reason: KafkaError | None) -> errors.LimnosError:
    code, text = error.code(), _short(error.str())
    if code == KafkaError.TOPIC_ALREADY_EXISTS:
        return errors.AlreadyExists(f"{about} already exists in the source", kind="topic")
    if code in _MISSING:
        return errors.NotFound(f"{about} does not exist in the source", kind="topic")
    if code in _CALLERS:
        return errors.BadRequest(f"{about}: the source reports: {text}")
    if code == KafkaError.TOPIC_DELETION_DISABLED:
        return errors.UnsupportedOperation(
            f"{about} cannot be dropped: the cluster keeps its topics (delete.topic.enable is false)"
        )
    if code in _NOT_ALLOWED:
        return errors.SourceFailed(f"The source refuses this operation of its user on {about}", detail=text)
    if code in _BUSY:
        return errors.ServiceUnavailable(
            f"The source is busy with {about}, and nothing was changed: try again", detail=text
        )
    if code in NOT_IN or (reason is not None and reason.code() in NOT_IN):
        return errors.SourceFailed(
            "The source refuses the sign-in of this server: check the catalog's security.protocol, user and password",
            detail=text,
        )
    return _silence(about, changes=changes, detail=f"{text}; {_detail(reason)}")


def _detail(reason: KafkaError | None) -> str:
    return "" if reason is None else f"{reason.name()}: {reason.str()}"


def _silence(about: str, *, changes: bool, detail: str) -> errors.LimnosError:
    if changes:
        return errors.StateUnknown(
            f"The source stopped responding while {about} was changed: check whether it was changed", detail=detail
        )
    return errors.SourceFailed("The source does not answer: try again, or check that system", detail=detail)


def _short(text: str) -> str:
    line = text.strip().partition("\n")[0]
    return line if len(line) <= _TEXT_MAX else f"{line[:_TEXT_MAX]}…"
