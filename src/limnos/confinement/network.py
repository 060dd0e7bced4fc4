# SPDX-License-Identifier: Apache-2.0
"""TCP ports: a thread, and what it starts, gives up connecting to and listening on all others, by Landlock.

The kernel compares ports and no addresses, so an allowed port is allowed on every host, and it does not limit UDP.
Unlike a network namespace this needs no right, so it works in containers, too.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from limnos.confinement.landlock import add_rule, create_ruleset, enforce, version
from limnos.confinement.system_calls import forbid_new_privileges

T = TypeVar("T")
SINCE: Final = 4
"""The first version of Landlock that knows TCP (Linux 6.7)."""
EPHEMERAL: Final = 0
"""The port of a process that listens on any free port."""
_NET_PORT: Final = 2
_BIND, _CONNECT = 1, 2


class _NetPort(ctypes.Structure):
    _fields_ = (("allowed", ctypes.c_uint64), ("port", ctypes.c_uint64))


def limit_network(*, connect: Iterable[int], bind: Iterable[int] = (EPHEMERAL,)) -> bool:
    """Forbid this thread and its children TCP connections to other ports than `connect`, and listening on other ports
    than `bind`, for good.

    Returns False, and forbids nothing, if the kernel cannot do it. Raises OSError.
    """
    if version() < SINCE:
        return False
    ruleset = create_ruleset(net=_BIND | _CONNECT)
    rights: dict[int, int] = {}
    for ports, right in ((connect, _CONNECT), (bind, _BIND)):
        for port in ports:
            rights[port] = rights.get(port, 0) | right
    for port, port_rights in rights.items():
        add_rule(ruleset, _NET_PORT, rule=_NetPort(port_rights, port))
    forbid_new_privileges()
    enforce(ruleset)
    os.close(ruleset)
    return True


def start_with_limited_network(start: Callable[[], T], *, connect: Iterable[int], bind: Iterable[int]) -> T:
    """Call `start`, which starts a process, in a thread of its own with a limited network, and return its result.

    The caller keeps its network. Raises the errors of `start`.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            limit_network(connect=connect, bind=bind)
            results.append(start())
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            errors.append(error)

    thread = threading.Thread(target=run, name="limited-network")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
