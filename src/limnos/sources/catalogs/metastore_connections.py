# SPDX-License-Identifier: Apache-2.0
"""Connections to a Hive metastore over its Thrift interface: a few, reused, with limits for the size of responses.

Must not know databases and tables, nor callers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Final, NamedTuple

from hive_metastore.ThriftHiveMetastore import Client
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.Thrift import TApplicationException, TException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from limnos.model.errors import LimnosError
from limnos.sources.catalogs.metastore_errors import REFUSALS, translate_metastore_errors
from limnos.sources.connectors.addresses import SourceAddress

IDLE_MAX: Final = 4
ANSWER_BYTES_MAX: Final = 64 << 20
"""The maximum number of bytes that are read for one call, so that a faulty source cannot exhaust the memory."""
_ITEMS_MAX: Final = 1_000_000
"""The maximum number of items of a list in a response."""
_READ_TO_END: Final = (LimnosError, TApplicationException, *REFUSALS)
"""Errors after which the last response on a connection was read completely."""


class _BoundedSocket(TSocket):  # type: ignore[misc]  # the library has no types
    """A socket that reads at most ANSWER_BYTES_MAX bytes until the next call of `begin`, so that a response cannot
    exhaust the memory.
    """

    left = ANSWER_BYTES_MAX

    def begin(self) -> None:
        """Reset the byte counter before a call."""
        self.left = ANSWER_BYTES_MAX

    def read(self, size: int) -> bytes:
        """Read up to `size` bytes. Raises TTransportException if the response exceeds the limit."""
        data: bytes = super().read(size)
        self.left -= len(data)
        if self.left < 0:
            raise TTransportException(TTransportException.SIZE_LIMIT, f"more than {ANSWER_BYTES_MAX} bytes")
        return data


class _ThriftConnection(NamedTuple):
    socket: _BoundedSocket
    transport: TBufferedTransport
    client: Client


class MetastoreConnections:
    """Connections to the first of the given addresses that responds."""

    def __init__(self, addresses: Sequence[SourceAddress], *, timeout_s: float) -> None:
        self._addresses = addresses
        self._late_ms = max(50, int(timeout_s * 800 / max(1, len(addresses))))
        self._lock = Lock()
        self._idle: list[_ThriftConnection] = []
        self._closed = False

    def close(self) -> None:
        """Close idle connections now, and connections in use after their call."""
        with self._lock:
            self._closed, idle, self._idle = True, self._idle, []
        for each in idle:
            each.transport.close()

    @contextmanager
    def open_client(self, about: str, *, kind: str, changes: bool = False) -> Iterator[Client]:
        """Yield a client for one call. A connection is reused only if its last response was read completely."""
        with translate_metastore_errors(about, kind=kind):
            connection = self._take_connection()
            connection.socket.begin()
        reusable = False
        try:
            with translate_metastore_errors(about, kind=kind, changes=changes):
                try:
                    yield connection.client
                except _READ_TO_END:
                    reusable = True
                    raise
                reusable = True
        finally:
            if reusable:
                self._give_back(connection)
            else:
                connection.transport.close()

    def _take_connection(self) -> _ThriftConnection:
        while True:
            with self._lock:
                idle = self._idle.pop() if self._idle else None
            if idle is None:
                return self._open_connection()
            try:
                idle.client.get_config_value("hive.metastore.uris", "")
            except (TException, OSError) as error:
                idle.transport.close()
                if isinstance(error, TTransportException) and error.type == TTransportException.TIMED_OUT:
                    raise  # a new connection would time out, too; other errors mean that this one is broken
            else:
                return idle

    def _open_connection(self) -> _ThriftConnection:
        for position, address in enumerate(self._addresses):
            socket = _BoundedSocket(address.host.strip("[]"), address.port)
            socket.setTimeout(self._late_ms)
            transport = TBufferedTransport(socket)
            protocol = TBinaryProtocolAccelerated(
                transport, string_length_limit=ANSWER_BYTES_MAX, container_length_limit=_ITEMS_MAX
            )
            try:
                transport.open()
            except (TException, OSError):
                transport.close()
                if position + 1 == len(self._addresses):
                    raise
            else:
                return _ThriftConnection(socket, transport, Client(protocol))
        raise TTransportException(TTransportException.NOT_OPEN, "no address")

    def _give_back(self, connection: _ThriftConnection) -> None:
        with self._lock:
            if not self._closed and len(self._idle) < IDLE_MAX:
                self._idle.append(connection)
                return
        connection.transport.close()
