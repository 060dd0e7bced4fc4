"""A kept answer of the lane that waits for the gate: called back within the gate's own turn, without a task or a future.

May import `telemetry`. Knows no store: the gate tells it that it was asked, and the connection's side says whether the answer holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from limnos.telemetry.logs import get_logger

if TYPE_CHECKING:
    from asyncio import Transport

    from limnos.http.application import Application
    from limnos.http.kept import Keeping, KeptAnswer, Key

log = get_logger("limnos.http")


E_contra = TypeVar("E_contra", contravariant=True)


class Lane(Protocol[E_contra]):
    """The connection that waits, by what is asked of it; `E_contra` is what it knows of a request."""

    application: Application
    transport: Transport

    def send_again(self, exchange: E_contra, kept: KeptAnswer, key: Key, started: float) -> None:
        """Send a kept answer."""
        ...

    def answer_afresh(self, exchange: E_contra, method: str, url: bytes, keeping: Keeping | None) -> None:
        """Let the application answer."""
        ...

    def say_late(self, exchange: E_contra, url: bytes, method: str) -> None:
        """Answer that the time for the request is over."""
        ...


class AfterGate(Generic[E_contra]):
    """A kept answer that waits for the gate: called back within the gate's own turn, without a task or a future.

    It is a waiter to the gate, and what the deadlines watch.
    """

    __slots__ = ("_done", "_exchange", "_kept", "_key", "_lane", "_started")

    def __init__(self, lane: Lane[E_contra], exchange: E_contra, kept: KeptAnswer, key: Key, started: float) -> None:
        self._lane, self._exchange = lane, exchange
        self._kept, self._key, self._started = kept, key, started
        self._done = False

    def done(self) -> bool:
        """Say whether it is waited no longer."""
        return self._done

    def set_result(self, _: object) -> None:
        """The gate was asked: send what is kept if it holds, and answer afresh otherwise."""
        self._end(holds=self._lane.application.kept.holds_after_gate(self._kept))

    def set_exception(self, _: Exception) -> None:
        """The gate could not be asked: whoever answers afresh finds out, and says so."""
        self._end(holds=False)

    def cancel(self) -> None:
        """The time for the request is over."""
        self._done = True
        self._lane.application.deadlines.release(self)
        method, url, _ = self._key
        try:
            self._lane.say_late(self._exchange, url, method)
        except Exception as error:  # noqa: BLE001 - the deadlines go on
            self._fail(error)

    def _end(self, *, holds: bool) -> None:
        self._done = True
        lane, key = self._lane, self._key
        lane.application.deadlines.release(self)
        try:
            if holds:
                lane.send_again(self._exchange, self._kept, key, self._started)
            else:
                lane.answer_afresh(self._exchange, key[0], key[1], lane.application.kept.keeping(key))
        except Exception as error:  # noqa: BLE001 - others wait for the gate as well
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        log.error("unexpected failure in the lane", exc_info=error)
        self._lane.transport.close()
