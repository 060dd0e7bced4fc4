# SPDX-License-Identifier: Apache-2.0
"""Simulated crashes of a node in the middle of its work, as by `kill -9`, and its restart on the same store and files.

A node crashes at a transaction (before it, within it, or after its commit), at a fault point, or at the deletion of a
file. From then on it writes nothing: whatever code still runs, no row and no file changes.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from limnos.app.bootstrap import bootstrap
from limnos.app.node_builder import build
from limnos.config.access import AccessSection
from limnos.config.settings import DatabaseSection, ServerSection, Settings
from limnos.http.throttle import CredentialThrottle
from limnos.rooms.maintenance.services import table_storage
from limnos.rooms.maintenance.services.orphans import removal, rounds
from limnos.services.iceberg.scan_queue import SCAN_OFFLOADER
from limnos.services.request.offloaded_work import InlineOffloader
from tests.http.driver import DriverNode
from tests.installed import expect_no_other_node

FAULT_MODULES = (rounds, removal, table_storage)
MOMENTS = ("before", "within", "after")


class _RolledBackError(Exception):
    """Raised in a mutation to roll it back."""


@dataclass
class NodeDeath:
    """A simulated crash of a node at one of the next steps of its work."""

    steps: int
    """The number of the step at which the node crashes."""
    moment: str
    """The moment of the crash if the step is a transaction: before it, within it, or after its commit."""
    happened: bool = False

    def passed(self) -> bool:
        """Count a step. Returns whether the node crashes at it. Raises CancelledError if the node has crashed
        already.
        """
        if self.happened:
            raise asyncio.CancelledError
        self.steps -= 1
        self.happened = self.steps == 0
        return self.happened

    def at_point(self, _point: str = "") -> None:
        """Count a fault point or the deletion of a file as a step. Raises CancelledError if the node crashes there."""
        if self.passed():
            raise asyncio.CancelledError

    async def at_transaction(self, real: Callable[..., Any], permit: Any, mutation: Any, **named: Any) -> Any:  # noqa: ANN401 - passed on
        """Execute a transaction, which counts as a step. Raises CancelledError if the node crashes there."""
        if not self.passed():
            return await real(permit, mutation, **named)
        if self.moment == "after":
            await real(permit, mutation, **named)
        elif self.moment == "within":

            def rolled_back(*args: object) -> None:
                mutation(*args)
                raise _RolledBackError

            with suppress(_RolledBackError):
                await real(permit, rolled_back, **named)
        raise asyncio.CancelledError


@contextmanager
def mortal(node: DriverNode, death: NodeDeath) -> Iterator[None]:
    """Let a node crash at the given step in the body of a `with`, and then start it again."""
    services = node.built.services
    store, files, point = services.store, services.files, rounds.fault_point
    submit, delete, staged = store.submit, files.delete, files.delete_staged

    async def submitted(permit: Any, mutation: Any, **named: Any) -> Any:  # noqa: ANN401 - passed on
        return await death.at_transaction(submit, permit, mutation, **named)

    async def deleted(*args: Any, **named: Any) -> None:  # noqa: ANN401 - passed on
        death.at_point()
        await delete(*args, **named)

    async def taken_back(*args: Any) -> None:  # noqa: ANN401 - passed on
        death.at_point()
        await staged(*args)

    store.submit, files.delete, files.delete_staged = submitted, deleted, taken_back  # type: ignore[method-assign, assignment]
    for module in FAULT_MODULES:
        module.fault_point = death.at_point  # type: ignore[attr-defined]
    try:
        yield
    except (asyncio.CancelledError, AssertionError):  # a request to a crashed node gets no answer
        if not death.happened:
            raise
    finally:
        store.submit, files.delete, files.delete_staged = submit, delete, staged  # type: ignore[method-assign]
        for module in FAULT_MODULES:
            module.fault_point = point  # type: ignore[attr-defined]
    if death.happened:
        restart(node)


def restart(node: DriverNode) -> None:
    """Close a node, and start another one on its store with the same clock and the same maintenance settings."""
    old = node.built
    services = old.services
    database = DatabaseSection.model_validate({"url": node.database})
    access = AccessSection(authentication="simple")
    settings = Settings(server=ServerSection(data=str(node.data)), access=access, database=database)
    node.runner.run(old.close())
    new = build(settings)
    expect_no_other_node(new.services)
    SCAN_OFFLOADER.put(new.services, InlineOffloader())
    new.application.outcomes.throttle = CredentialThrottle(burst=1_000_000)
    new.services.store.time = services.store.time  # type: ignore[misc, assignment]
    new.services.defaults = new.services.defaults._replace(maintenance=services.defaults.maintenance)
    node.runner.run(bootstrap(new.services, settings))
    node.built = new


def random_death(chance: random.Random, steps_max: int) -> NodeDeath:
    """Return a crash at one of the next steps, chosen at random."""
    return NodeDeath(chance.randrange(1, steps_max + 1), chance.choice(MOMENTS))
