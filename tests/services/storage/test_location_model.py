# SPDX-License-Identifier: Apache-2.0
"""The register of storage locations against a plain model: random creates, staged creates, moves, drops, purges and
unregisters of three users, with credentials that are still alive, under a clock that the test moves.

The model knows locations as tuples of names, and each claim as one line. Each step says whether the register must take
the claim, who may have credentials, and which files a purge may delete. Locations lie at, above and below one another,
in several spellings, and lists of claims are read in pages of two rows. `LIMNOS_TEST_PLACES=all` runs more steps.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec
import pytest

from limnos.files import key_of, normalise
from limnos.model.entities import MetadataDocument, Node
from limnos.model.errors import BadRequest, ServiceUnavailable
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.records import CatalogRecord
from limnos.model.storage_locations import LocationClaim, LocationKind
from limnos.services.catalog.tables import (
    TableCreate,
    TableDrop,
    TableUnregister,
    table_delete,
    table_insert,
    table_unregister_write,
)
from limnos.services.storage import location_claims
from limnos.services.storage.location_claims import (
    location_move,
    location_stage,
    locations_lock,
    locations_release,
    rivals_of,
)
from limnos.services.vending.location_owners import LocationOwner, is_exclusive
from limnos.store.objects import storage_locations
from limnos.store.objects.storage_locations import RegisteredLocation, near_query, registered_location_of
from limnos.store.tx import Tx
from tests.backends import StoreLab
from tests.store.world import CATALOG, METALAKE, add_namespace

STEPS: Final = 10_000 if os.environ.get("LIMNOS_TEST_PLACES") == "all" else 400
LIFE_MS: Final = 3_600_000
ROOT: Final = "s3://b/w"
USERS: Final = (11, 12, 13)
ROLE: Final = {"s3.role-arn": "arn:aws:iam::123456789012:role/tables", "warehouse": ROOT}
OBJECTS: Final = ("table", "staged", "earlier")
Path = tuple[str, ...]


def overlaps(one: Path, other: Path) -> bool:
    """Return whether one location equals or contains the other."""
    return one[: len(other)] == other or other[: len(one)] == one


@dataclass(kw_only=True)
class PlainClaim:
    """A claim of the model: its owner, and the users who may take over the location when the owner is gone."""

    path: Path
    what: str
    owner: int
    heirs: frozenset[int]
    state: str = "live"
    until: int | None = None
    had_files: bool = False
    lake: int = 1


@dataclass
class Key:
    """Credentials that were given to users of an object at a location."""

    path: Path
    heirs: frozenset[int]
    until: int


@dataclass
class Model:
    """All claims, and all credentials that may still be valid."""

    now: int = 10_000_000_000_000
    claims: list[PlainClaim] = field(default_factory=list)
    keys: list[Key] = field(default_factory=list)

    def standing(self, path: Path, *, but: int = 0) -> list[PlainClaim]:
        """Return the claims of others at, above or below a location that have not ended."""
        return [
            each
            for each in self.claims
            if overlaps(each.path, path) and each.owner != but and (each.until is None or each.until > self.now)
        ]

    def verdict(self, path: Path, user: int, *, but: int = 0) -> tuple[set[str], PlainClaim | None]:
        """Return the reasons against a new claim of a user, and the claim that it replaces."""
        reasons: set[str] = set()
        replaced = None
        for each in self.standing(path, but=but):
            if each.lake != 1:
                reasons.add("refused")
            elif each.state == "deleting":
                reasons.add("wait")
            elif each.path == path and user in each.heirs and (each.state != "live" or each.what == "staged"):
                replaced = each
            else:
                reasons.add("refused")
        return reasons, replaced

    def owners(self) -> list[PlainClaim]:
        """Return the live tables."""
        return [each for each in self.claims if each.what == "table" and each.state == "live"]

    def of(self, owner: int) -> list[PlainClaim]:
        """Return the claims of an object."""
        return [each for each in self.claims if each.owner == owner]

    def is_opened(self, table: PlainClaim) -> bool:
        """Return whether a table gives credentials."""
        return not table.had_files and all(each.lake == 1 for each in self.standing(table.path))

    def breaches(self) -> list[tuple[Key, PlainClaim]]:
        """Return claims of others where credentials may still be valid."""
        return [
            (key, claim)
            for key in self.keys
            if key.until > self.now
            for claim in self.standing(key.path)
            if claim.lake == 1 and not claim.heirs & key.heirs
        ]


class Register:
    """The register of a store with a catalog that vends credentials, and a catalog of another metalake."""

    def __init__(self, lab: StoreLab, model: Model) -> None:
        self.lab, self.model = lab, model
        self.lake = lab.write(lambda tx: _node(tx, Kind.METALAKE, "lake", 0))
        pond = lab.write(lambda tx: _node(tx, Kind.METALAKE, "pond", 0))
        self.catalog = lab.write(lambda tx: _node(tx, Kind.CATALOG, "main", self.lake.id), zone=self.lake.id)
        self.far = lab.write(lambda tx: _node(tx, Kind.CATALOG, "far", pond.id), zone=pond.id)
        self.space = lab.write(lambda tx: add_namespace(tx, self.catalog, "s"), zone=self.catalog.id)
        root = LocationClaim(
            kind=LocationKind.WAREHOUSE, owner_id=self.catalog.id, catalog_id=self.catalog.id, metalake_id=0
        )
        self.write(lambda tx: tx.places.put(root, ROOT), USERS[0])
        self.nodes: dict[int, Node] = {}

    def write(self, mutation: Callable[[Tx], object], user: int, command: object = None) -> object:
        """Run a mutation of the catalog as a user, at the model's time."""
        permit = msgspec.structs.replace(
            self.lab.permit(0, self.lake.id, self.catalog.id).about(command), actor_id=user
        )

        def run(tx: Tx) -> object:
            tx.now_ms = self.model.now
            return mutation(tx)

        return self.lab.run(self.lab.store.submit(permit, run))

    def call(self, mutation: Callable[[Tx, Permit[object]], object], user: int, command: object) -> object:
        """Run a mutation with its command."""
        permit = msgspec.structs.replace(
            self.lab.permit(0, self.lake.id, self.catalog.id).about(command), actor_id=user
        )
        return self.write(lambda tx: mutation(tx, permit), user, command)


def _node(tx: Tx, kind: Kind, name: str, parent: int) -> Node:
    node_id = tx.next_id()
    tx.new_zone(node_id)
    record = METALAKE if kind is Kind.METALAKE else _catalog(name)
    return tx.nodes.create(
        kind=kind, space=kind.word, name=name, parent_id=parent, zone=parent, record=record, node_id=node_id
    )


def _catalog(name: str) -> CatalogRecord:
    return replace(CATALOG, properties=ROLE if name == "main" else {})


def _leave_trash(tx: Tx, owner: int) -> None:
    locations_release(tx, owner)
    tx.trash.forget(owner)


def spelled(path: Path, rng: random.Random) -> str:
    """Return one of the spellings of a location, in its normal form."""
    text = f"{ROOT}/{'/'.join(path)}"
    return normalise(
        rng.choice((text, text.replace("x", "%78"), text.replace("/y", "//y"), f"s3a://{text[5:]}/", text))
    )


class Story:
    """A random sequence of steps in the register and in the model."""

    def __init__(self, lab: StoreLab, seed: int) -> None:
        self.rng, self.model = random.Random(seed), Model()
        self.register = Register(lab, self.model)
        self.steps: dict[str, int] = {}
        self.number = 0
        self.files: dict[int, str] = {}
        """The metadata file of each table."""
        self.makers: dict[int, frozenset[int]] = {}
        """The user who made each table, alone in a set."""

    def run(self, steps: int) -> None:
        """Take steps, and check after each one that no one has claims where credentials of others are alive."""
        choices = (
            *("create",) * 4,
            *("stage",) * 3,
            *("move",) * 3,
            "trash",
            "release",
            *("purge",) * 2,
            *("purged",) * 2,
            "leave",
            *("keys",) * 4,
            *("pass",) * 3,
            "sweep",
            "overlap",
            "free",
        )
        for _ in range(steps):
            name = self.rng.choice(choices)
            if getattr(self, name)() is not False:
                self.steps[name] = self.steps.get(name, 0) + 1
            assert self.model.breaches() == []

    def path(self) -> Path:
        """Return a location of one to three levels."""
        return tuple(self.rng.choice("xyz") for _ in range(self.rng.choice((1, 2, 2, 2, 3, 3, 3, 3, 3))))

    def outcome(self, work: Callable[[], object]) -> str:
        """Run a mutation, and return its outcome."""
        try:
            work()
        except BadRequest:
            return "refused"
        except ServiceUnavailable:
            return "wait"
        return "taken"

    def judge(self, outcome: str, reasons: set[str]) -> bool:
        """Check an outcome. Returns whether the claim was taken."""
        assert outcome in (reasons or {"taken"}), (outcome, reasons)
        return not reasons

    def create(self) -> None:
        """A user creates a table, sometimes where files are."""
        path, user, had_files = self.path(), self.rng.choice(USERS), self.rng.random() < 0.2
        location, space = spelled(path, self.rng), self.register.space
        self.number += 1
        document = MetadataDocument(
            node_id=0,
            version=1,
            uuid=f"u{self.number}",
            location=location,
            metadata_location=f"{location}/metadata/1",
            body=b"{}",
        )
        command = TableCreate(
            namespace=space,
            name=f"t{self.number}",
            space="table",
            document=document,
            owner_id=user,
            had_files=had_files,
        )
        documents: list[MetadataDocument] = []
        reasons, replaced = self.model.verdict(path, user)
        work = lambda: documents.append(self.register.call(table_insert, user, command))  # type: ignore[arg-type, func-returns-value] # noqa: E731
        if self.judge(self.outcome(work), reasons):
            self._replace(replaced, user)
            owner = documents[0].node_id
            self.files[owner] = documents[0].metadata_location
            self.makers[owner] = frozenset({user})
            had_files = had_files and (replaced is None or replaced.had_files)
            self.model.claims.append(
                PlainClaim(path=path, what="table", owner=owner, heirs=frozenset({user}), had_files=had_files)
            )
            self.register.nodes[owner] = self.register.lab.write(
                lambda tx: tx.nodes.by_id(owner), zone=self.register.catalog.id
            )

    def _replace(self, replaced: PlainClaim | None, user: int) -> None:
        if replaced is not None:
            self.model.claims.remove(replaced)
            if replaced.state == "dropped":  # the object leaves the trash: its other locations pass to the user, too
                for each in self.model.of(replaced.owner):
                    each.state, each.heirs = "released", frozenset({user})
        self.model.claims = [each for each in self.model.claims if each.until is None or each.until > self.model.now]

    def stage(self) -> None:
        """A user stages a create, and gets credentials if no file is there."""
        path, user, had_files = self.path(), self.rng.choice(USERS), self.rng.random() < 0.2
        location, until = spelled(path, self.rng), self.model.now + LIFE_MS
        register = self.register
        reasons, replaced = self.model.verdict(path, user)
        work = lambda: register.write(  # noqa: E731
            lambda tx: location_stage(
                tx,
                catalog_id=register.catalog.id,
                namespace_id=register.space.id,
                location=location,
                keys_until=until,
                had_files=had_files,
            ),
            user,
        )
        if self.judge(self.outcome(work), reasons):
            self._replace(replaced, user)
            had_files = had_files and (replaced is None or replaced.had_files)
            self.number += 1
            heirs = frozenset({user})
            self.model.claims.append(
                PlainClaim(path=path, what="staged", owner=-self.number, heirs=heirs, until=until, had_files=had_files)
            )
            if not had_files:
                self.model.keys.append(Key(path, heirs, until))

    def move(self) -> bool:
        """A table moves to another location, or back to an earlier one."""
        if not self.model.owners():
            return False
        table = self.rng.choice(self.model.owners())
        mine = self.model.of(table.owner)
        path = self.path() if self.rng.random() < 0.5 else self.rng.choice(mine).path
        if path == table.path:
            return False
        user, had_files = min(table.heirs), self.rng.random() < 0.3
        reasons, replaced = self.model.verdict(path, user, but=table.owner)
        location, register = spelled(path, self.rng), self.register

        def run(tx: Tx) -> None:
            locations_lock(tx, locations=(location,))
            location_move(
                tx,
                LocationKind.TABLE,
                owner_id=table.owner,
                catalog_id=register.catalog.id,
                location=location,
                had_files=had_files,
            )

        if self.judge(self.outcome(lambda: register.write(run, user)), reasons):
            self._replace(replaced, user)
            before = [*(each for each in mine if each.path == path), *([] if replaced is None else [replaced])]
            had_files = had_files and (not before or any(each.had_files for each in before))
            self.model.claims = [each for each in self.model.claims if each.owner != table.owner or each.path != path]
            table.what = "earlier"
            self.model.claims.append(
                PlainClaim(path=path, what="table", owner=table.owner, heirs=table.heirs, had_files=had_files)
            )
        return True

    def _end(self, *, keep_ms: int, state: str, purges: bool = False) -> bool:
        if not self.model.owners():
            return False
        table = self.rng.choice(self.model.owners())
        node, dropper = self.register.nodes[table.owner], self.rng.choice(USERS)
        purge = f'{{"metadata-location": "{self.files[table.owner]}"}}' if purges else None
        self.register.call(table_delete, dropper, TableDrop(node, purge, keep_ms))
        for each in self.model.of(table.owner):
            each.state = state
            if state == "dropped":  # who drops a table may take over its location, and knows of the credentials
                each.heirs |= {dropper}
                for key in self.model.keys:
                    if key.path == each.path:
                        key.heirs |= {dropper}
        return True

    def trash(self) -> bool:
        """A user with the right to drop moves a table to the trash."""
        return self._end(keep_ms=10**12, state="dropped")

    def release(self) -> bool:
        """A user drops a table for good; its files stay."""
        return self._end(keep_ms=0, state="released")

    def purge(self) -> bool:
        """A user drops a table with its files."""
        return self._end(keep_ms=0, purges=True, state="deleting")

    def purged(self) -> bool:
        """The task of a purge ends at one location: it finds out what it may delete, and whether a file is left."""
        going = [each for each in self.model.claims if each.state == "deleting"]
        if not going:
            return False
        claim, whole = self.rng.choice(going), self.rng.random() < 0.7
        key, register = f"{ROOT}/{'/'.join(claim.path)}", self.register
        rivals = register.write(lambda tx: rivals_of(tx, key, but=claim.owner), USERS[0])
        expected = [
            each
            for each in self.model.claims
            if overlaps(each.path, claim.path)
            and each.owner != claim.owner
            and each.what in OBJECTS
            and each.lake == 1
            and not (each.state == "deleting" and each.path == claim.path)
        ]
        assert bool(rivals) == bool(expected), (rivals, expected)
        since = register.lab.database.sql(
            "SELECT since FROM place WHERE owner_id = ? AND location = ?", claim.owner, key
        )
        register.write(
            lambda tx: tx.places.record_purge(key, catalog_id=register.catalog.id, whole=whole, keys_ms=LIFE_MS),
            USERS[0],
        )
        for each in [each for each in going if each.path == claim.path]:
            each.state = "released"
            if whole:
                each.until = since[0][0] + LIFE_MS
                if each.until <= self.model.now:
                    self.model.claims.remove(each)
        return True

    def leave(self) -> bool:
        """The owner unregisters a table, whose files stay."""
        if not self.model.owners():
            return False
        table = self.rng.choice(self.model.owners())
        user, node = min(table.heirs), self.register.nodes[table.owner]
        self.register.call(table_unregister_write, user, TableUnregister(node, []))
        for each in self.model.of(table.owner):
            each.state, each.until = "released", self.model.now + LIFE_MS
        return True

    def keys(self) -> bool:
        """A reader of a table asks for credentials."""
        if not self.model.owners():
            return False
        table = self.rng.choice(self.model.owners())
        key = key_of(normalise(f"{ROOT}/{'/'.join(table.path)}"))
        rows = [registered_location_of(row) for row in self.register.lab.find(near_query(key))]
        near = [each for each in rows if not each.is_over(self.model.now)]
        is_given = is_exclusive(near, key=key, owner=LocationOwner(table.owner, self.register.lake.id))
        # A page of claims below has two rows here, so a claim of another metalake behind them is not seen at once.
        if len([each for each in rows if each.location.startswith(f"{key}/")]) < storage_locations.RIVALS_MAX:
            assert is_given == self.model.is_opened(table), (table, near)
        if is_given and self.model.is_opened(table):
            self.model.keys.append(Key(table.path, table.heirs, self.model.now + LIFE_MS))
        return True

    def overlap(self) -> bool:
        """A root of another metalake appears, as an earlier release allowed, or disappears."""
        far = self.register.far.id
        claim = LocationClaim(kind=LocationKind.ALLOWED_LOCATION, owner_id=far, catalog_id=far, metalake_id=0)
        if any(each.lake == 2 for each in self.model.claims):
            self.register.write(lambda tx: tx.places.clear_roots(far), USERS[0])
            self.model.claims = [each for each in self.model.claims if each.lake == 1]
            return True
        path = self.path()
        self.register.write(lambda tx: tx.places.put(claim, f"{ROOT}/{'/'.join(path)}"), USERS[0])
        self.model.claims.append(PlainClaim(path=path, what="root", owner=far, heirs=frozenset(), lake=2))
        return True

    def free(self) -> bool:
        """A day later upkeep finds no file at a released location; a dropped object leaves the trash."""
        self.model.now += 24 * LIFE_MS
        for owner in sorted({each.owner for each in self.model.claims if each.state == "dropped"}):
            self.register.write(lambda tx, owner=owner: _leave_trash(tx, owner), USERS[0])  # type: ignore[misc]
        for each in [each for each in self.model.claims if each.state == "released"]:
            claim, key = each, f"{ROOT}/{'/'.join(each.path)}"
            place = RegisteredLocation(
                location=key,
                claim=LocationClaim(kind=LocationKind.TABLE, owner_id=claim.owner, catalog_id=0, metalake_id=0),
                claimant_id=None,
                since=0,
            )
            for kind in (LocationKind.TABLE, LocationKind.DATA_PATH):
                row = place._replace(claim=place.claim._replace(kind=kind))
                self.register.write(lambda tx, row=row: tx.places.free_one(row), USERS[0])  # type: ignore[misc]
            self.model.claims.remove(claim)
        for each in self.model.claims:
            if each.state == "dropped":
                each.state, each.heirs = "released", self.makers[each.owner]
        return True

    def pass_(self) -> None:
        """Time passes."""
        self.model.now += self.rng.randint(1, LIFE_MS * 2 // 3)

    def sweep(self) -> None:
        """Upkeep ends claims whose credentials have expired."""
        self.register.write(lambda tx: tx.places.end_expired(), USERS[0])
        now = self.model.now
        self.model.claims = [each for each in self.model.claims if each.until is None or each.until > now]


setattr(Story, "pass", Story.pass_)


@pytest.mark.parametrize("seed", range(3))
def test_register_agrees_with_the_model(lab: StoreLab, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """The register takes and refuses the claims that the model takes and refuses, and gives credentials where the model
    does. No one ever claims a location at, above or below one for which others' credentials are alive.
    """
    for module in (storage_locations, location_claims):
        monkeypatch.setattr(module, "RIVALS_MAX", 2)
    story = Story(lab, seed)

    story.run(STEPS)

    assert min(story.steps.get(name, 0) for name in ("create", "stage", "move", "purged", "leave", "keys")) > 0, (
        story.steps
    )
