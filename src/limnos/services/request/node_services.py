"""What every request of a node shares: the store, the gate before the view, rules, settings, files, and the parts of single packages.

A part is what a package of `services` keeps, by a key that the package declares: it is made when it is first asked for, unless
`app` has put another one before. So this module knows no package, and each package knows the type of what it keeps. May import
`access`, `store`, `view` and `model`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast
from typing import Protocol as Interface

from limnos.services.request.audit_lines import AuditLines
from limnos.services.request.commit_watcher import CommitWatcher
from limnos.services.request.offloaded_work import InlineOffloader
from limnos.services.request.per_key_queue import PerKeyQueue

if TYPE_CHECKING:
    from collections.abc import Callable

    from limnos.access.authentication import Authenticator
    from limnos.model.audit import RequestOrigin
    from limnos.model.decisions import Decision
    from limnos.services.request.defaults import AccessSettings, RequestDefaults
    from limnos.services.request.files import FileOperations
    from limnos.services.request.offloaded_work import WorkOffloader
    from limnos.store.interface import Store
    from limnos.view.freshness_gate import FreshnessGate

T = TypeVar("T")


class AuditedRequest(Interface):
    """A request as the audit wants it: where it came from, what was decided for it, and whether it changed anything."""

    decided: list[Decision] | None
    """What was decided in this request so far; None where nobody wants to know."""
    user_id: int | None
    has_changed: bool

    def origin(self) -> RequestOrigin:
        """Say where it came from."""
        ...


class ComponentKey(Generic[T]):
    """The key of one part: its name for messages, and how it is made where nobody has put one."""

    __slots__ = ("_make", "name")

    def __init__(self, name: str, make: Callable[[NodeServices], T]) -> None:
        self.name = name
        self._make = make

    def __repr__(self) -> str:
        return f"Part({self.name!r})"

    def of(self, services: NodeServices) -> T:
        """Return the part of a server; it is made if it is not there yet."""
        parts = services.parts
        if self not in parts:
            parts[self] = self._make(services)
        return cast("T", parts[self])

    def put(self, services: NodeServices, part: T) -> None:
        """Let a server have this part from now on."""
        services.parts[self] = part


class NodeServices:
    """What every request shares: the store, the gate before the view, files and rules."""

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
        chores: WorkOffloader | None = None,
        wake_deliveries: Callable[[], object] = lambda: None,
    ) -> None:
        self.store = store
        self.gate, self.view = gate, gate.view
        self.rules, self.authenticator = rules, authenticator
        self.defaults, self.files = defaults, files
        self.wake_worker, self.wake_deliveries = wake_worker, wake_deliveries
        self.parts: dict[ComponentKey[Any], object] = {}
        """What packages of services keep, by the keys that they declare."""
        self.wake_executor: Callable[[], object] = lambda: None
        self.chores: WorkOffloader = InlineOffloader() if chores is None else chores
        self.lines = PerKeyQueue()
        self.audit = AuditLines(store, gate, rules=defaults.audit)
        self.watch = CommitWatcher(gate, store)
