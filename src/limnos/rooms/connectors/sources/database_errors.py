# SPDX-License-Identifier: Apache-2.0
"""Maps errors of databases to the server's errors, by SQLSTATE, which is the same in every release and language.

Must not know the request. If the request is at fault, the error has the database's message. Errors of connections and
logins have no details: hosts and user names are only logged.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from limnos.model import errors
from limnos.rooms.connectors.sources.mysql_states import state_of, text_of

_TAKEN: Final = {"42P07": "table", "42P06": "namespace"}
_MISSING: Final = {"42P01": "table", "3F000": "namespace"}
_NEEDED: Final = "2BP01"
_LATE: Final = frozenset({"57014", "55P03", "40P01", "40001"})
"""Timeouts of statements and locks, deadlocks, and serialization failures: nothing was changed."""
_CALLERS: Final = ("0A", "22", "23", "42")
"""Classes of errors that the caller's request caused."""
_TEXT_MAX: Final = 300


@contextmanager
def translate_database_errors(about: str, *, container: bool = False, changes: bool = False) -> Iterator[None]:
    """Translate SQLAlchemy's errors in the body to the server's errors.

    Args:
        about: A description of the object for messages, such as `Table "a"`.
        container: Whether the object is a schema; an error about dependent objects then means NotEmpty.
        changes: Whether the body commits a change; a lost connection then raises StateUnknown.
    """
    try:
        yield
    except DBAPIError as error:
        raise _error(error, about, container=container, changes=changes) from error
    except PoolTimeout as error:
        raise errors.ServiceUnavailable(
            f"Too many requests to the source of {about} are in progress: try again"
        ) from error
    except SQLAlchemyError as error:
        raise errors.BadRequest(f"{about}: {_short(str(error))}") from error


def _error(error: DBAPIError, about: str, *, container: bool, changes: bool) -> errors.LimnosError:
    state, text = state_of(error.orig), _short(text_of(error.orig))
    if state in _TAKEN:
        return errors.AlreadyExists(f"{about} already exists in the source", kind=_TAKEN[state])
    if state in _MISSING:
        return errors.NotFound(f"{about} does not exist in the source", kind=_MISSING[state])
    if state == _NEEDED and container:
        return errors.NotEmpty(f"{about} is not empty: drop its content first", kind="namespace")
    if state == "42501":
        return errors.SourceFailed(f"The source refuses this operation of its user on {about}", detail=text)
    if state in _LATE:
        return errors.ServiceUnavailable(
            f"The source is busy with {about}, and nothing was changed: try again", detail=text
        )
    if state == _NEEDED or state[:2] in _CALLERS:
        return errors.BadRequest(f"{about}: the source reports: {text}")
    if state[:2] in ("28", "3D"):
        return errors.SourceFailed(
            "The source refuses the sign-in of this server: check the catalog's database, user and password",
            detail=text,
        )
    if changes and error.connection_invalidated:
        return errors.StateUnknown(
            f"The source stopped responding while {about} was changed: check whether it was changed", detail=text
        )
    return errors.SourceFailed("The source does not answer: try again, or check that system", detail=text)


def _short(text: str) -> str:
    """Return the first line of a database's message, shortened."""
    line = text.strip().partition("\n")[0]
    return line if len(line) <= _TEXT_MAX else f"{line[:_TEXT_MAX]}…"
