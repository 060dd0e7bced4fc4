# SPDX-License-Identifier: Apache-2.0
"""Node services: the components that all requests of a node share, such as store, freshness gate, rules, settings and
files.

Must not know the packages of `services`. A package stores its own component here under a `ComponentKey` that the
package declares. The component is created at its first use, unless `app` has set it before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar
from typing import Protocol as Interface
from uuid import uuid4

from limnos.access.authentication import Authenticator
from limnos.model.audit import RequestOrigin
from limnos.model.decisions import Decision
from limnos.services.request.audit_lines import AuditLines
from limnos.services.request.concurrency.background_loops import BackgroundLoops
from limnos.services.request.concurrency.commit_watcher import CommitWatcher
from limnos.services.request.concurrency.per_key_queue import PerKeyQueue
from limnos.services.request.defaults import AccessSettings, RequestDefaults
from limnos.services.request.files import FileOperations
from limnos.services.request.offloaded_work import InlineOffloader, WorkOffloader
from limnos.store.interface import Store
from limnos.view.freshness_gate import FreshnessGate

T = TypeVar("T")


class AuditedRequest(Interface):
    """The data of a request for the audit: its origin, its decisions, and whether it made a change."""

    decided: list[Decision] | None
    """The decisions of this request so far; None if they are not recorded."""
    user_id: int | None
    has_changed: bool

    def origin(self) -> RequestOrigin:
        """Return protocol, operation, user agent, client IP address and authentication of the request, for the
        audit.
        """

    def hops(self) -> str:
        """Return the header with the ids of the server nodes that passed the request on as clients of a source."""


class ComponentKey(Generic[T]):
    """The typed key of a component: its name for messages, and the function that creates the component at its first
    use.
    """

    __slots__ = ("_make", "name")

    def __init__(self, name: str, make: Callable[[NodeServices], T]) -> None:
        self.name = name
        self._make = make

    def __repr__(self) -> str:
        return f"Part({self.name!r})"

    def of(self, services: NodeServices) -> T:
        """Return this component of a node; it is created at the first call."""
        parts = services.parts
        if self not in parts:
            parts[self] = self._make(services)
        part: T = parts[self]
        return part

    def put(self, services: NodeServices, part: T) -> None:
        """Set this component of a node, as `app` does at start-up and as tests do."""
        services.parts[self] = part


class NodeServices:
    """The components that all requests of a node share: store, freshness gate, files, rules and others."""

    def __init__(
        self,
        *,
        store: Store,
        gate: FreshnessGate,
        rules: AccessSettings,
        authenticator: Authenticator,
        defaults: RequestDefaults,
        files: FileOperations,
        wake_worker: Callable[[], None],
        offloader: WorkOffloader | None = None,
        wake_deliveries: Callable[[], object] = lambda: None,
    ) -> None:
        self.store = store
        self.gate, self.view = gate, gate.view
        self.rules, self.authenticator = rules, authenticator
        self.defaults, self.files = defaults, files
        self.wake_worker, self.wake_deliveries = wake_worker, wake_deliveries
        self.parts: dict[ComponentKey[Any], Any] = {}
        """The components of the packages of services, by their keys."""
        self.wake_executor: Callable[[], object] = lambda: None
        self.offloader: WorkOffloader = InlineOffloader() if offloader is None else offloader
        self.lines = PerKeyQueue()
        self.loops = BackgroundLoops()
        self.audit = AuditLines(store, gate, rules=defaults.audit)
        self.watch = CommitWatcher(gate, store)


OWN_NODE: ComponentKey[str] = ComponentKey("own_node", lambda _: uuid4().hex)
"""The id of this node: it writes heartbeats under it, and sends it with requests to sources."""
ROUTE_OPERATIONS: ComponentKey[frozenset[str]] = ComponentKey("route_operations", lambda _: frozenset())
"""The operations of all routes that this node serves, as requests have them in metrics, logs and the audit."""
