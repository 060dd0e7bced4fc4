# SPDX-License-Identifier: Apache-2.0
"""A migration between two Iceberg catalogs: lists the objects to move, registers them, compares both sides, and cuts
each table over.

A run keeps nothing between its calls: it compares both catalogs, so a killed run is simply run again. Tables are
registered by their metadata files, and never copied.
"""

from __future__ import annotations

import posixpath
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

import msgspec

from limnos.cli.migration.states import Name, ObjectError, ViewState
from limnos.model.struct_types import build_struct_types
from limnos.model.table_states import MOVED_TO, TableState, relation
from limnos.names import display
from limnos.names.errors import InvalidName
from limnos.names.parts import check_part

if TYPE_CHECKING:
    from limnos.cli.migration.rest_catalog import RestCatalog

READERS: Final = 8
"""The number of requests to the source at once."""
CHUNK: Final = 400
MOVED_SUFFIX: Final = "__moved"
_WITHOUT_PATH: Final = frozenset(
    {"create-principal", "add-members", "assign-roles", "create-tag", "tag", "grant", "set-owner"}
)
"""Items that name their object in another way."""
_OWN_PROPERTIES: Final = frozenset({"location", "owner"})
"""Properties of namespaces that stay behind: places and owners belong to each catalog."""


class Line(NamedTuple):
    """What is said of one object: its path, a word, and an explanation."""

    path: Name
    word: str
    text: str = ""


RENAMED: Final = "renamed-here"
"""The word of a table that came before and has another path in the target by now."""
SAME_ACCESS: Final = "same-access"
"""The word of a user, right, tag or owner that the target has already."""


class Item(NamedTuple):
    """A change to make on the target: the object, the word of the line if it is made, and the item of a bulk job."""

    path: Name
    word: str
    fields: dict[str, object]
    plan_text: str = ""
    """What a plan says of the change; empty for a change that is only counted."""


T = TypeVar("T")
Printer = Callable[[Line], None]


class Source(Protocol):
    """The catalog whose tables are moved. Its methods raise ObjectError."""

    def namespaces(self) -> Iterator[Name]:
        """Yield all namespaces, parents before children."""

    def namespace_properties(self, namespace: Name) -> dict[str, str]:
        """Return a namespace's properties."""

    def tables(self, namespace: Name) -> Iterator[str]:
        """Yield the names of the tables of a namespace."""

    def views(self, namespace: Name) -> list[str]:
        """Return the names of the views of a namespace."""

    def table(self, path: Name) -> TableState:
        """Load a table."""

    def view(self, path: Name) -> ViewState:
        """Load a view."""

    def mark(self, path: Name, properties: Mapping[str, str], *, expected: TableState) -> TableState:
        """Set properties of a table if it is still at the expected snapshot."""

    def retire(self, path: Name, name: str) -> str:
        """Make later commits to a table fail: rename it within its namespace, or close its entry. Returns its name from
        then on.
        """


class Target(Protocol):
    """The catalog that tables are moved to."""

    catalog: RestCatalog

    def states(self, paths: Sequence[Name]) -> Mapping[Name, TableState]:
        """Return the tables that few requests load together; each of the others is loaded by itself."""

    def send(self, items: Sequence[Item]) -> Iterator[tuple[Item, str, str]]:
        """Make changes. Yields each with its outcome (`made`, `same`, `refused`, `failed`) and the message."""


@dataclass
class Locations:
    """The directories in which the tables of the source lie: for each scheme and bucket, the deepest common one."""

    by_root: dict[str, list[str]] = field(default_factory=dict)
    objects: dict[str, Name] = field(default_factory=dict)

    def add(self, path: Name, location: str) -> Name | None:
        """Add a table. Returns another table at the same location, if there is one."""
        scheme, _, rest = location.partition("://")
        root, *parents = posixpath.dirname(rest).split("/")
        key, known = f"{scheme}://{root}", self.by_root.get(f"{scheme}://{root}")
        if known is None:
            self.by_root[key] = parents
        else:
            common = [one for one, other in zip(known, parents, strict=False)]
            same = next((at for at, pair in enumerate(zip(known, parents, strict=False)) if pair[0] != pair[1]), None)
            self.by_root[key] = common if same is None else common[:same]
        other = self.objects.setdefault(location, path)
        return None if other == path else other

    def needed(self, allowed: Iterable[str]) -> list[str]:
        """Return the directories that are not below an allowed one."""
        roots = [each.rstrip("/") for each in allowed]
        directories = ["/".join((key, *parents)).rstrip("/") for key, parents in self.by_root.items()]
        return [each for each in directories if not any(each == root or each.startswith(f"{root}/") for root in roots)]


class Move:
    """A migration of the tables of one catalog to another."""

    def __init__(self, source: Source, target: Target, *, says: Printer, only: Name = ()) -> None:
        self.source = source
        self.target = target
        self.says = says
        self.only = only
        self.counts: Counter[str] = Counter()
        self.locations = Locations()
        self.paths_by_folded: dict[tuple[str, ...], Name] = {}
        self._renamed: dict[str, tuple[Name, TableState]] | None = None

    def run(self, *, plans: bool = False) -> None:
        """Bring what is new or has changed; with `plans` only say what would come."""
        namespaces = self._namespaces(plans=plans)
        for namespace in namespaces:
            for items in self._changes(namespace):
                self._send(items, plans=plans)
            if not plans:
                self._views(namespace)
            else:
                for name in self.source.views(namespace):
                    self._print_line(Line((*namespace, name), "view"))

    def run_items(self, items: Iterable[Item], *, plans: bool) -> None:
        """Make further changes on the target, in order."""
        for some in _chunks(items, CHUNK):
            for each in some:
                if not each.fields:
                    self._print_line(Line(each.path, each.word, "belongs to another catalog"))
            self._send([each for each in some if each.fields], plans=plans)

    def objects(self) -> Iterator[tuple[Name, str]]:
        """Yield the namespaces and tables of the source, with their kinds."""
        for namespace in self.source.namespaces():
            if self._is_wanted(namespace):
                yield namespace, "namespace"
                for name in self.source.tables(namespace):
                    yield (*namespace, name), "table"

    def check(self) -> None:
        """Compare both sides, table by table."""
        for namespace in self.source.namespaces():
            if self._is_wanted(namespace):
                for path, source, target in self._states(namespace):
                    self._print_line(
                        self._renamed_line(path, source, target=target) or _compared(path, source, target=target)
                    )

    def cut_over(self, *, to: str, renames: bool) -> None:
        """Make the target the only catalog of each table that both sides agree on: mark it in the source, bring the
        marked state, and rename it there, so that nobody commits to it by its name.
        """
        for namespace in self.source.namespaces():
            if self._is_wanted(namespace):
                for path, source, target in self._states(namespace):
                    self._print_line(self._cut_over_table(path, source, target=target, to=to, renames=renames))

    def _is_wanted(self, namespace: Name) -> bool:
        return namespace[: len(self.only)] == self.only

    def _print_line(self, line: Line) -> None:
        self.counts[line.word] += 1
        self.says(line)

    def _namespaces(self, *, plans: bool) -> list[Name]:
        """Create the missing namespaces, and set the properties that differ. Returns those whose names fit."""
        namespaces: list[Name] = []
        items: list[Item] = []
        for namespace in self.source.namespaces():
            if not self._is_wanted(namespace) or not self._fits(namespace):
                continue
            namespaces.append(namespace)
            try:
                properties = self.source.namespace_properties(namespace)
            except ObjectError as error:
                self._print_line(Line(namespace, "unreadable", str(error)))
                continue
            items += self._namespace_item(namespace, properties)
        for some in _chunks(items, CHUNK):
            self._send(some, plans=plans)
        return namespaces

    def _namespace_item(self, namespace: Name, properties: dict[str, str]) -> list[Item]:
        properties_to_set = {key: value for key, value in properties.items() if key not in _OWN_PROPERTIES}
        try:
            target_properties = self.target.catalog.namespace_properties(namespace)
        except ObjectError:
            comment = {"comment": properties_to_set.pop("comment")} if "comment" in properties_to_set else {}
            make: dict[str, object] = {
                "do": "create-namespace",
                "exists": "skip",
                "properties": properties_to_set,
                **comment,
            }
            return [Item(namespace, "new-namespace", make)]
        differs = {key: value for key, value in properties_to_set.items() if target_properties.get(key) != value}
        comment = {"comment": differs.pop("comment")} if "comment" in differs else {}
        if not differs and not comment:
            return []
        return [
            Item(
                namespace,
                "changed-namespace",
                {"do": "set-properties", "kind": "namespace", "set": differs, **comment},
            )
        ]

    def _fits(self, path: Name) -> bool:
        """Return whether the server accepts the last part of a name. Says so if not, and for two that fold to one."""
        try:
            check_part(path[-1])
        except InvalidName as error:
            self._print_line(Line(path, "illegal-name", str(error)))
            return False
        folded = tuple(part.casefold() for part in path)
        other = self.paths_by_folded.setdefault(folded, path)
        if other != path:
            self._print_line(Line(path, "case-twin", f"differs from {display.render(other)} by case alone"))
        return True

    def _changes(self, namespace: Name) -> Iterator[list[Item]]:
        """Yield the registrations of a namespace's tables, some hundred at a time."""
        items: list[Item] = []
        for path, source, target in self._states(namespace):
            if not self._fits(path):
                continue
            if isinstance(source, ObjectError) or isinstance(target, ObjectError):
                self._print_line(_compared(path, source, target=target))
                continue
            other = self.locations.add(path, source.location)
            if other is not None:
                self._print_line(
                    Line(path, "same-place", f"has the location of {display.render(other)}: {source.location}")
                )
                continue
            if (line := self._renamed_line(path, source, target=target)) is not None:
                self._print_line(line)
                continue
            if target is not None and relation(source, target) != "behind":
                self._print_line(_compared(path, source, target=target))
                continue
            items.append(_registration(path, source, target=target))
            if len(items) >= CHUNK:
                yield items
                items = []
        yield items

    def _states(
        self, namespace: Name
    ) -> Iterator[tuple[Name, TableState | ObjectError, TableState | ObjectError | None]]:
        """Yield the tables of a namespace with their states on both sides, read several at a time."""
        try:
            names = list(self.source.tables(namespace))
            target_names = set(self.target.catalog.tables(namespace))
        except ObjectError as error:
            if error.status != 404:
                self._print_line(Line(namespace, "unreadable", str(error)))
                return
            names, target_names = _or_none(lambda: list(self.source.tables(namespace))), set()

        states: Mapping[Name, TableState] = {}

        def load(name: str) -> tuple[Name, TableState | ObjectError, TableState | ObjectError | None]:
            source = _try(lambda: self.source.table((*namespace, name)))
            if name.endswith(MOVED_SUFFIX) and isinstance(source, TableState) and source.moved_to:
                name, source = name.removesuffix(MOVED_SUFFIX), source.as_renamed()
            path = (*namespace, name)
            if name not in target_names:
                return path, source, None
            return path, source, states.get(path) or _try(lambda: self.target.catalog.table(path))

        build_struct_types()
        with ThreadPoolExecutor(READERS) as pool:
            for some in _chunks(names, CHUNK):
                states = self.target.states([(*namespace, each) for each in some if each in target_names])
                yield from pool.map(load, some)

    def _renamed_line(
        self, path: Name, source: TableState | ObjectError, *, target: TableState | ObjectError | None
    ) -> Line | None:
        """Return what is said of a table that the target has under another path; None for other tables.

        Its files have a table there, so that it is not registered again.
        """
        if target is not None or isinstance(source, ObjectError):
            return None
        if self._renamed is None:
            self._renamed = self._tables_of_target_alone()
        other_path, other = self._renamed.get(source.location, ((), None))
        if other is None or other.uuid != source.uuid:
            return None
        where = f"is {display.render(other_path)} in the target"
        line = _compared(path, source, target=other)
        if line.word in {"same", "ahead"}:
            return Line(path, RENAMED, where)
        return Line(path, line.word, f"{where}; {line.text}: rename it there to {display.render(path)}, and run again")

    def _tables_of_target_alone(self) -> dict[str, tuple[Name, TableState]]:
        """Return the tables of the target whose paths the source does not have, by their locations."""
        paths: list[Name] = []
        for namespace in _or_none(lambda: list(self.target.catalog.namespaces())):
            source_names = set(_or_none(partial(_names, self.source, namespace)))
            paths += [
                (*namespace, name)
                for name in _or_none(partial(_names, self.target.catalog, namespace))
                if name not in source_names
            ]

        def load(path: Name) -> tuple[Name, TableState | ObjectError]:
            return path, _try(lambda: self.target.catalog.table(path))

        build_struct_types()
        with ThreadPoolExecutor(READERS) as pool:
            loaded = [each for some in _chunks(paths, CHUNK) for each in pool.map(load, some)]
        return {state.location: (path, state) for path, state in loaded if isinstance(state, TableState)}

    def _send(self, items: Sequence[Item], *, plans: bool) -> None:
        if plans:
            for each in items:
                self._print_line(Line(each.path, each.word, each.plan_text))
            return
        for item, outcome, message in self.target.send(items) if items else ():
            had = SAME_ACCESS if item.word == item.fields.get("do") else item.word
            word = {"made": item.word, "same": had}.get(outcome, outcome)
            self._print_line(Line(item.path, word, message))

    def _views(self, namespace: Name) -> None:
        """Create the views that are missing, and say which differ."""
        for name in self.source.views(namespace):
            path = (*namespace, name)
            if not self._fits(path):
                continue
            try:
                source = self.source.view(path)
                self._print_line(self._view(path, source))
            except ObjectError as error:
                self._print_line(Line(path, "unreadable" if error.status == 0 else "refused", str(error)))

    def _view(self, path: Name, source: ViewState) -> Line:
        dialects = ", ".join(source.dialects)
        try:
            target_view = self.target.catalog.view(path)
        except ObjectError as error:
            if error.status != 404:
                raise
            self.target.catalog.create_view(path, source)
            return Line(path, "new-view", f"texts: {dialects}")
        if target_view.is_like(source):
            return Line(path, "same")
        return Line(path, "view-differs", "drop it here and run again to take the source's text")

    def _cut_over_table(
        self,
        path: Name,
        source: TableState | ObjectError,
        *,
        target: TableState | ObjectError | None,
        to: str,
        renames: bool,
    ) -> Line:
        if isinstance(source, ObjectError) or isinstance(target, ObjectError) or target is None:
            return self._renamed_line(path, source, target=target) or _compared(path, source, target=target)
        if source.is_renamed and relation(source, target) in ("same", "ahead"):
            return Line(path, "cut-over")
        if source.is_renamed or relation(source, target) not in ("same", "behind"):
            return _compared(path, source, target=target)
        try:
            new_address = f"{to}.{display.render(path)}"
            marked = (
                source
                if source.moved_to == new_address
                else self.source.mark(path, {MOVED_TO: new_address}, expected=source)
            )
            target = self._bring_table(path, marked, target=target)
            if not renames:
                return Line(path, "marked", f"{MOVED_TO} is set in the source; writers there are not stopped")
            moved = self.source.retire(path, f"{path[-1]}{MOVED_SUFFIX}")
            # That ends commits by the old name: one that came before is in this state, and is brought.
            last = self.source.table((*path[:-1], moved))
            self._bring_table(path, last, target=target)
        except ObjectError as error:
            return Line(path, "not-cut-over", str(error))
        is_closed = moved == path[-1]
        return Line(
            path, "cut-over", "its entry in the source is closed" if is_closed else f"in the source it is {moved}"
        )

    def _bring_table(self, path: Name, source: TableState, *, target: TableState) -> TableState:
        """Point the target's table at the source's metadata file. Raises ObjectError if it does not succeed."""
        if source.metadata_location == target.metadata_location:
            return target
        for _, outcome, message in self.target.send([_registration(path, source, target=target)]):
            if outcome not in ("made", "same"):
                raise ObjectError(
                    f"the last state of the source is {source.metadata_location}, and the target did not take it:"
                    f" {message}"
                )
        return source


def _registration(path: Name, source: TableState, *, target: TableState | None) -> Item:
    register: dict[str, object] = {"do": "register-table", "metadata_location": source.metadata_location}
    if target is None:
        return Item(path, "new", register)
    return Item(path, "changed", {**register, "exists": "replace", "expected": target.metadata_location})


def _compared(path: Name, source: TableState | ObjectError, *, target: TableState | ObjectError | None) -> Line:
    """Return the line that compares a table of the source with its copy."""
    if isinstance(source, ObjectError):
        if source.word:
            return Line(path, source.word, str(source))
        word = "gone" if source.status == 404 else "unreadable"
        return Line(path, word, f"the source lists it, but says: {source}")
    if isinstance(target, ObjectError):
        return Line(path, "unreadable", f"the target says: {target}")
    if target is None:
        return Line(path, "missing", "only the source has it")
    word = relation(source, target)
    if word == "same":
        is_equal = source.snapshot_id == target.snapshot_id
        return Line(path, "same") if is_equal else Line(path, "diverged", "one metadata file, but two snapshots")
    texts = {
        "behind": f"the source is at snapshot {source.snapshot_id}, the target at {target.snapshot_id}",
        "ahead": "the target took commits after the move; the source did not",
        "diverged": "both sides took commits, or the source too many to tell: compare them, and choose one by hand",
        "other": "the target has another table of this name",
    }
    return Line(path, word, texts[word])


def _try(load: Callable[[], TableState]) -> TableState | ObjectError:
    try:
        return load()
    except ObjectError as error:
        return error


def _names(catalog: Source | RestCatalog, namespace: Name) -> list[str]:
    return list(catalog.tables(namespace))


def _or_none(names: Callable[[], list[T]]) -> list[T]:
    try:
        return names()
    except ObjectError:
        return []


def _chunks(items: Iterable[str] | Iterable[Item] | Iterable[Name], size: int) -> Iterator[list]:  # type: ignore[type-arg]
    rest = iter(items)
    while some := list(islice(rest, size)):
        yield some


def new_job() -> str:
    """Return a name for the bulk job of a run. What was brought is seen in the catalogs, so no run continues a job."""
    return f"migrate-{secrets.token_hex(6)}"


def encode_item(catalog: str, item: Item) -> bytes:
    """Return the line of an item of a bulk job."""
    path = {} if item.fields["do"] in _WITHOUT_PATH else {"path": [catalog, *item.path]}
    return msgspec.json.encode({"do": item.fields["do"], **path, **item.fields})
