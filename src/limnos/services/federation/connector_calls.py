# SPDX-License-Identifier: Apache-2.0
"""Calls of connectors: whatever a connector raises becomes an error of its source, which names the catalog.

Must not know what is called, nor in which thread. Connectors are the code of other packages and of their libraries,
which may raise a SystemExit, or a `PanicException` of a library in Rust. As BaseExceptions they would end the server.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from limnos.model.errors import LimnosError, SourceFailed, SourceLoop, StateUnknown
from limnos.model.kinds import FURTHER_PROVIDER
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.connectors")
T = TypeVar("T")


class ConnectorCall(NamedTuple):
    """A connector that is called: its provider, and its catalog, which is empty while none exists."""

    provider: str
    catalog: str = ""

    @property
    def subject(self) -> str:
        """The words for a message: the catalog if there is one, else the provider."""
        return f"Catalog {self.catalog}" if self.catalog else f"Provider {self.provider}"

    def run(self, call: Callable[[], T], *, changes: bool = False) -> T:
        """Call a function of the connector.

        Raises the errors of `limnos.model.errors` that the connector raises; a SourceFailed names the catalog. Any
        other exception becomes SourceFailed, or StateUnknown with `changes`: the source may have made the change. Its
        traceback is in the log, and its message not in the answer, because it may have a secret. The log also has the
        cause of an error that another package's connector raises.
        """
        try:
            return call()
        except SourceLoop:
            raise
        except SourceFailed as error:
            self._log_cause(error)
            raise error.with_message(self._add_subject(error.message)) from error
        except LimnosError as error:
            self._log_cause(error)
            raise
        except BaseException as error:  # noqa: BLE001 - code of other packages: not even a SystemExit ends the server
            raise self._fault(error, changes=changes) from None

    def _log_cause(self, error: LimnosError) -> None:
        """Log what another package's connector met before it raised an error for its callers (`raise … from error`)."""
        cause = error.__cause__
        if cause is not None and not isinstance(cause, LimnosError) and self.provider.startswith(FURTHER_PROVIDER):
            log.warning(
                "connector refused a call",
                catalog=self.catalog,
                provider=self.provider,
                error=error.message,
                exc_info=cause,
            )

    def _add_subject(self, message: str) -> str:
        return message if not self.catalog or message.startswith(self.subject) else f"{self.subject}: {message}"

    def _fault(self, error: BaseException, *, changes: bool) -> LimnosError:
        kind = type(error).__name__
        log.error("connector failed", catalog=self.catalog, provider=self.provider, exc_info=error)
        if changes:
            return StateUnknown(
                f"{self.subject}: its connector failed with {kind}, and may have made the change: check before you"
                " repeat it. The server's log has the traceback"
            )
        return SourceFailed(f"{self.subject}: its connector failed with {kind}. The server's log has the traceback")
