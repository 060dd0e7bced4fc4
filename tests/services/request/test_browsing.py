# SPDX-License-Identifier: Apache-2.0
"""Lists of containers have exactly the names above objects that the caller may use. They are compared with a model
after each change.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from limnos.access import browsing as paths
from limnos.access.actions import Action
from limnos.model.errors import AlreadyExists, BadRequest, IllegalPrivilege, NotEmpty, NotFound, PermissionDenied
from limnos.model.kinds import KINDS, Kind
from limnos.model.privileges import GrantCondition, Privilege
from limnos.rooms.sqlpp.services.execution.metadata import metadata_gather
from limnos.rooms.sqlpp.services.execution.metadata_requests import MetadataRequest
from limnos.services.catalog.namespaces import (
    namespace_alter,
    namespace_drop,
    namespace_load,
    namespace_move,
    namespaces_list,
)
from limnos.services.catalog.tables import table_drop, table_load, table_move
from limnos.services.identity.grants import PrivilegeRequest, privileges_grant, roles_give
from limnos.services.identity.groups import member_remove, members_add
from limnos.services.identity.owners import owner_set
from limnos.services.identity.roles import role_create
from limnos.services.identity.users import principal_add
from limnos.services.request import name_pages
from limnos.services.request.browsing import catalog_names, paths_of
from limnos.services.request.name_pages import PageRequest
from limnos.services.request.property_edits import PropertyEdits
from limnos.services.request.request_scope import RequestScope
from limnos.services.upkeep.trash import trash_list, trash_restore
from limnos.store.objects import owners as owner_rows
from limnos.view import listings
from tests.backends import Database, StoreLab
from tests.inprocess import LAKE, MAIN, Node, add_catalog, fill
from tests.services.browsing import BrowsingModel
from tests.services.conftest import ServiceDesk

pytestmark = pytest.mark.slow

REFUSED = (PermissionDenied, NotFound)
ROLES = {"yes": True, "no": False, "ours": True}
"""Roles of the test; ana has `ours` through the group."""
RIGHTS = (Privilege.USE_CATALOG, Privilege.USE_SCHEMA, Privilege.SELECT_TABLE, Privilege.MODIFY_TABLE)


def grant(
    desk: ServiceDesk, kind: Kind, name: str, *privileges: Privilege, role: str = "yes", takes: bool = False
) -> None:
    """Let a role allow a privilege, deny it (`no`), or remove its rule."""
    condition = GrantCondition.ALLOW if ROLES[role] else GrantCondition.DENY
    privilege_request = PrivilegeRequest(kind, name, tuple((each, condition) for each in privileges))
    desk.run(
        privileges_grant(
            desk.ctx(), metalake=LAKE, role=role, privilege_request=privilege_request, grants_them=not takes
        )
    )


def own(desk: ServiceDesk, kind: Kind, name: str, who: str, *, as_kind: Kind = Kind.USER) -> None:
    """Transfer the ownership of an object to a user."""
    desk.run(owner_set(desk.ctx(), metalake=LAKE, kind=kind, full_name=name, owner_kind=as_kind, owner=who))


@pytest.fixture
def lake(desk: ServiceDesk) -> ServiceDesk:
    """A lake of three catalogs, with roles for ana and a group `crew`."""
    for name in ("other", "third"):
        desk.run(add_catalog(desk.ctx(), name))
    desk.run(principal_add(desk.ctx(), metalake=LAKE, kind=Kind.GROUP, name="crew"))
    for role in ROLES:
        desk.run(role_create(desk.ctx(), metalake=LAKE, name=role, properties={}, privilege_requests=()))
        kind, name = (Kind.GROUP, "crew") if role == "ours" else (Kind.USER, "ana")
        desk.run(roles_give(desk.ctx(), metalake=LAKE, kind=kind, name=name, roles=(role,)))
    return desk


@pytest.fixture
def deep(lake: ServiceDesk) -> ServiceDesk:
    """A desk with the tables `main.Privilege.Q.t`, `main.Privilege.S.t` and `main.other.t`."""
    for levels in (("P", "Q"), ("P", "S"), ("other",)):
        lake.namespace(*levels)
        lake.table(*levels, "t")
    return lake


def listed(desk: ServiceDesk, *parent: str, user: str = "ana", node: Node | None = None) -> list[str] | None:
    """List namespaces. Returns None if the list is refused."""
    ctx = (node or desk.node).ctx(user)
    scope, levels = RequestScope(LAKE, parent[0]), parent[1:]
    try:
        return desk.run(ctx.read(scope, lambda request_view: namespaces_list(request_view, levels))).texts()
    except REFUSED:
        return None


def catalogs(desk: ServiceDesk, *, user: str = "ana", node: Node | None = None) -> list[str]:
    """List catalogs."""
    return desk.run(catalog_names((node or desk.node).ctx(user), LAKE))


# -- examples ------------------------------------------------------------------------------------------------------


def test_right_on_nested_namespace_makes_its_ancestors_visible(deep: ServiceDesk) -> None:
    """A user with a right on one nested namespace can reach it from the root by lists, which show none of its
    siblings.
    """
    grant(deep, Kind.CATALOG, "main", Privilege.USE_CATALOG)
    assert listed(deep, "main") == []

    grant(deep, Kind.NAMESPACE, "main.P:Q", Privilege.USE_SCHEMA)

    assert catalogs(deep) == ["main"]
    assert listed(deep, "main") == ["P"]
    assert listed(deep, "main", "P") == ["Q"]
    assert listed(deep, "main", "P", "Q") == []
    with pytest.raises(PermissionDenied):
        deep.run(deep.ctx("ana").read(MAIN, lambda request_view: namespace_load(request_view, ("P",))))


@pytest.mark.parametrize("how", ["right", "owner", "group", "group's right"])
def test_right_on_one_table_makes_its_ancestors_visible(deep: ServiceDesk, how: str) -> None:
    """A user with a right on one table, its owner, and a member of a group with such a right can reach the table by
    lists, also without USE_CATALOG.
    """
    if how.startswith("group"):
        deep.run(members_add(deep.ctx(), metalake=LAKE, group="crew", users=("ana",)))
    assert (catalogs(deep), listed(deep, "main")) == ([], None)

    if "right" in how:
        grant(deep, Kind.TABLE, "main.P:Q.t", Privilege.SELECT_TABLE, role="ours" if how.startswith("group") else "yes")
    else:
        own(
            deep,
            Kind.TABLE,
            "main.P:Q.t",
            "ana" if how == "owner" else "crew",
            as_kind=Kind.USER if how == "owner" else Kind.GROUP,
        )

    assert catalogs(deep) == ["main"]
    assert (listed(deep, "main"), listed(deep, "main", "P")) == (["P"], ["Q"])
    assert (listed(deep, "main", "P", "S"), listed(deep, "main", "other"), listed(deep, "main", "gone")) == (None,) * 3
    with pytest.raises(PermissionDenied):
        deep.run(deep.ctx("ana").read(MAIN, lambda request_view: table_load(request_view, ("P", "Q"), "t")))


@pytest.mark.parametrize(
    "kind, name, privilege",
    [
        (Kind.TABLE, "main.P:Q.t", Privilege.SELECT_TABLE),
        (Kind.NAMESPACE, "main.P:Q", Privilege.SELECT_TABLE),
        (Kind.NAMESPACE, "main.P", Privilege.USE_SCHEMA),
        (Kind.CATALOG, "main", Privilege.USE_CATALOG),
        (Kind.METALAKE, LAKE, Privilege.USE_CATALOG),
    ],
)
def test_denied_privilege_makes_no_container_visible(
    deep: ServiceDesk, kind: Kind, name: str, privilege: Privilege
) -> None:
    """A privilege that is denied at some level, or whose USE privilege is denied above it, makes no container
    visible.
    """
    grant(deep, Kind.TABLE, "main.P:Q.t", Privilege.SELECT_TABLE, role="ours")
    deep.run(members_add(deep.ctx(), metalake=LAKE, group="crew", users=("ana",)))
    assert listed(deep, "main") == ["P"]

    grant(deep, kind, name, privilege, role="no")
    assert (catalogs(deep), listed(deep, "main")) == ([], None)

    grant(deep, kind, name, privilege, role="no", takes=True)
    assert (catalogs(deep), listed(deep, "main")) == (["main"], ["P"])


def test_catalog_wide_privilege_makes_no_container_visible(deep: ServiceDesk) -> None:
    """A privilege on the whole catalog makes no container visible in lists, because it is not on an object in the
    catalog.
    """
    grant(deep, Kind.CATALOG, "main", Privilege.USE_SCHEMA, Privilege.SELECT_TABLE)
    assert (catalogs(deep), listed(deep, "main")) == ([], None)

    grant(deep, Kind.CATALOG, "main", Privilege.USE_SCHEMA, takes=True)
    grant(deep, Kind.NAMESPACE, "main.P:Q", Privilege.USE_SCHEMA)
    assert (listed(deep, "main"), listed(deep, "main", "P")) == (["P"], ["Q"])


def test_lists_follow_moves_drops_and_undrops(deep: ServiceDesk) -> None:
    """After a move, lists show the new names; after a drop they omit the names until the undrop."""
    grant(deep, Kind.TABLE, "main.P:Q.t", Privilege.SELECT_TABLE)
    admin = deep.ctx()
    deep.run(namespace_move(admin, MAIN, source=("P", "Q"), target=("other", "Q")))
    assert (listed(deep, "main"), listed(deep, "main", "other"), listed(deep, "main", "P")) == (["other"], ["Q"], None)

    deep.run(namespace_move(admin, MAIN, source=("other",), target=("fine",)))
    assert listed(deep, "main") == ["fine"]

    deep.run(table_move(admin, MAIN, source=("fine", "Q", "t"), target=("P", "S", "u")))
    assert (listed(deep, "main"), listed(deep, "main", "P"), listed(deep, "main", "fine")) == (["P"], ["S"], None)

    deep.run(table_drop(admin, MAIN, namespace=("P", "S"), name="u", purge=False))
    assert (catalogs(deep), listed(deep, "main")) == ([], None)

    (dropped,) = deep.run(trash_list(admin, MAIN, below=(), before=(2**62, 2**62), limit=10)).entries
    deep.run(trash_restore(admin, MAIN, dropped_id=dropped.row.id))
    assert (catalogs(deep), listed(deep, "main")) == (["main"], ["P"])


def test_created_containers_are_listed_at_the_next_request(deep: ServiceDesk) -> None:
    """A create moves no access revision, but a cached list has the new containers at the next request."""
    grant(deep, Kind.CATALOG, "main", Privilege.USE_CATALOG)
    grant(deep, Kind.NAMESPACE, "main.P:Q", Privilege.CREATE_SCHEMA)
    assert listed(deep, "main") == []

    deep.namespace("P", "Q", "mine", user="ana")

    assert (listed(deep, "main"), listed(deep, "main", "P")) == (["P"], ["Q"])


def test_pages_are_full_despite_hidden_names(lake: ServiceDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each page of names is full, and all pages together have every visible name once, however many names are
    hidden.
    """
    monkeypatch.setattr(listings, "BLOCK", 4)
    monkeypatch.setattr(name_pages, "READ_MAX", 8)
    grant(lake, Kind.CATALOG, "main", Privilege.USE_CATALOG)
    expected = []
    for number in range(50):
        name = f"n{number:02}"
        lake.namespace(name, "in")
        if number % 7 == 3:
            grant(lake, Kind.NAMESPACE, f"main.{name}:in", Privilege.USE_SCHEMA)
        if number % 11 == 5:
            grant(lake, Kind.NAMESPACE, f"main.{name}", Privilege.USE_SCHEMA)
        if number % 7 == 3 or number % 11 == 5:
            expected.append(name)
    pages: list[list[str]] = []
    after: str | None = ""
    while after is not None:
        page_request = PageRequest(after, 3)
        page = lake.run(
            lake.ctx("ana").read(MAIN, lambda request_view: namespaces_list(request_view, (), page_request))  # noqa: B023
        )
        pages.append(page.texts())
        after = page.last

    assert [name for part in pages for name in part] == expected
    assert all(len(part) == 3 for part in pages[:-1])


# -- costs ---------------------------------------------------------------------------------------------------------


def cached_paths(desk: ServiceDesk, node: Node, user: str = "ana") -> Any:  # noqa: ANN401 - compared by identity
    """Return the cached browse paths of `main`."""
    return desk.run(node.ctx(user).read(MAIN, paths_of))


def test_cached_list_sends_one_statement(deep: ServiceDesk) -> None:
    """If both lists are cached, each sends only the store's freshness check."""
    grant(deep, Kind.TABLE, "main.P:Q.t", Privilege.SELECT_TABLE)
    node = Node(deep.lab.open())
    for ask, expected in (
        (lambda: catalogs(deep, node=node), ["main"]),
        (lambda: listed(deep, "main", node=node), ["P"]),
    ):
        assert ask() == expected
        statements = []
        for _ in range(3):
            deep.run(
                namespace_alter(deep.ctx(), MAIN, levels=("other",), edits=PropertyEdits(comment="new"))
            )  # so that the list checks the store
            start = node.store.statements
            assert ask() == expected
            statements.append(node.store.statements - start)
        assert statements == [1, 1, 1]


def test_unrelated_changes_keep_the_cached_paths(deep: ServiceDesk) -> None:
    """The same cached paths are used after commits, renames, and changes of other users' objects and rights."""
    grant(deep, Kind.NAMESPACE, "main.P:Q", Privilege.USE_SCHEMA)
    own(deep, Kind.TABLE, "main.P:S.t", "ana")
    node = Node(deep.lab.open())
    before = cached_paths(deep, node)
    for change in (
        lambda: deep.table("other", "u"),
        lambda: deep.run(table_drop(deep.ctx(), MAIN, namespace=("other",), name="u", purge=False)),
        lambda: deep.table("P", "Q", "mine"),
        lambda: deep.allow("bob", Kind.CATALOG, "main", Privilege.USE_CATALOG),
        lambda: own(deep, Kind.TABLE, "main.other.t", "bob"),
        lambda: deep.run(namespace_move(deep.ctx(), MAIN, source=("P",), target=("R",))),
    ):
        change()
        assert cached_paths(deep, node) is before

    deep.run(namespace_move(deep.ctx(), MAIN, source=("R", "Q"), target=("other", "Q")))
    assert cached_paths(deep, node) is not before
    assert listed(deep, "main", node=node) == ["R", "other"]


def test_no_paths_are_computed_for_users_who_see_the_whole_list(
    deep: ServiceDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paths are computed only for users who do not see a whole list."""
    grant(deep, Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.USE_SCHEMA)
    for name in ("other", "third"):
        grant(deep, Kind.CATALOG, name, Privilege.USE_CATALOG)
    monkeypatch.setattr(paths, "_BrowsePathBuilder", None)

    assert listed(deep, "main") == ["P", "other"]
    assert catalogs(deep) == ["main", "other", "third"]


def test_paths_for_many_rules_are_computed_in_parts(lake: ServiceDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a user with many rules and objects, paths are computed in parts of bounded duration, with the same result."""
    monkeypatch.setattr(paths, "READ_MAX", 3)
    monkeypatch.setattr(paths, "WORK_MAX", 6)
    monkeypatch.setattr(owner_rows, "OWNED_MAX", 4)
    for number in range(20):
        lake.namespace(f"a{number:02}", "b")
        grant(lake, Kind.NAMESPACE, f"main.a{number:02}:b", Privilege.USE_SCHEMA)
        lake.namespace(f"o{number:02}", "b")
        own(lake, Kind.NAMESPACE, f"main.o{number:02}:b", "ana")
    node = Node(lake.lab.open())

    assert catalogs(lake, node=node) == ["main"]
    node = Node(lake.lab.open())
    assert listed(lake, "main", node=node) == [f"{letter}{number:02}" for letter in "ao" for number in range(20)]


@pytest.fixture
def crowd(database: Database) -> Iterator[ServiceDesk]:
    """A lake of 40 catalogs with a namespace each, on either store. Ana is a member of 60 groups with a role each.

    By the roles she may use every second namespace; groups own two others.
    """
    lab = StoreLab(database)
    desk = ServiceDesk(lab)
    desk.run(fill(desk.ctx()))
    desk.users("ana")
    for number in range(40):
        desk.run(add_catalog(desk.ctx(), f"c{number:02}"))
        desk.namespace("a", scope=RequestScope(LAKE, f"c{number:02}"))
    for number in range(60):
        group, role = f"g{number:02}", f"r{number:02}"
        desk.run(principal_add(desk.ctx(), metalake=LAKE, kind=Kind.GROUP, name=group))
        desk.run(members_add(desk.ctx(), metalake=LAKE, group=group, users=("ana",)))
        privilege_requests = () if number >= 40 or number % 2 else (use_of(f"c{number:02}.a"),)
        desk.run(
            role_create(desk.ctx(), metalake=LAKE, name=role, properties={}, privilege_requests=privilege_requests)
        )
        desk.run(roles_give(desk.ctx(), metalake=LAKE, kind=Kind.GROUP, name=group, roles=(role,)))
    for name, group in (("c07.a", "g03"), ("c21.a", "g59")):
        own(desk, Kind.NAMESPACE, name, group, as_kind=Kind.GROUP)
    yield desk
    desk.node.services.files.close()
    lab.close()


def use_of(name: str) -> PrivilegeRequest:
    """Return a grant of the use of a namespace."""
    return PrivilegeRequest(Kind.NAMESPACE, name, ((Privilege.USE_SCHEMA, GrantCondition.ALLOW),))


CROWD_SEES = sorted([f"c{number:02}" for number in range(0, 40, 2)] + ["c07", "c21"])


def know_caller(desk: ServiceDesk) -> Node:
    """Return a new node that knows ana's groups and roles, as after any request of hers."""
    node = Node(desk.lab.open())
    desk.run(
        node.ctx("ana").read(RequestScope(LAKE), lambda view: view.require(Action.METALAKE_LOAD, view.settled.outer))
    )
    return node


def test_first_list_of_catalogs_costs_three_statements(crowd: ServiceDesk) -> None:
    """A node that knows nothing but the caller lists the catalogs with three statements, however many groups, roles
    and catalogs there are: a load, and the freshness check of all catalogs.
    """
    node = know_caller(crowd)
    before = node.store.statements

    assert catalogs(crowd, node=node) == CROWD_SEES
    assert node.store.statements - before == 3


def test_first_list_of_a_new_node_costs_twelve_statements(crowd: ServiceDesk) -> None:
    """A node that knows nothing reads the caller with all groups, roles and grants with four statements."""
    node = Node(crowd.lab.open())
    before = node.store.statements

    assert catalogs(crowd, node=node) == CROWD_SEES
    assert node.store.statements - before == 12


def test_lists_of_namespaces_after_the_list_of_catalogs_cost_three_statements(crowd: ServiceDesk) -> None:
    """After a list of catalogs, the first list of namespaces in each of them reads only their names."""
    node = know_caller(crowd)
    catalogs(crowd, node=node)
    for catalog, expected in (("c00", ["a"]), ("c07", ["a"]), ("c09", None)):
        before = node.store.statements

        assert listed(crowd, catalog, node=node) == expected
        assert node.store.statements - before <= 3


def test_first_list_of_namespaces_costs_few_statements(crowd: ServiceDesk) -> None:
    """A node that knows nothing but the caller lists the namespaces of a catalog with few statements."""
    node = know_caller(crowd)
    before = node.store.statements

    assert listed(crowd, "c07", node=node) == ["a"]
    assert node.store.statements - before <= 12


@pytest.mark.parametrize("limit", [1, 3])
def test_more_than_one_statement_reads_is_read_in_parts(
    crowd: ServiceDesk, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """What is too much for one statement (catalogs, owned objects, objects with grants) is read in parts, with the same
    result.
    """
    monkeypatch.setattr(owner_rows, "OWNED_MAX", limit)
    assert catalogs(crowd, node=Node(crowd.lab.open())) == CROWD_SEES

    monkeypatch.setattr(paths, "READ_MAX", limit)
    assert catalogs(crowd, node=Node(crowd.lab.open())) == CROWD_SEES


def test_loaded_containers_follow_changes(crowd: ServiceDesk) -> None:
    """Facts that one statement loaded for all catalogs follow later changes of each: grants, denials, owners, drops,
    restrictions and new catalogs.
    """
    node = know_caller(crowd)
    catalogs(crowd, node=node)
    admin = crowd.ctx()

    crowd.run(namespace_drop(admin, RequestScope(LAKE, "c00"), levels=("a",)))
    own(crowd, Kind.NAMESPACE, "c07.a", "admin")
    crowd.run(privileges_grant(admin, metalake=LAKE, role="r59", privilege_request=use_of("c33.a")))
    denial = PrivilegeRequest(Kind.CATALOG, "c02", ((Privilege.USE_SCHEMA, GrantCondition.DENY),))
    crowd.run(privileges_grant(admin, metalake=LAKE, role="r59", privilege_request=denial))
    crowd.run(add_catalog(admin, "c99"))
    crowd.namespace("b", scope=RequestScope(LAKE, "c99"))
    own(crowd, Kind.NAMESPACE, "c99.b", "g01", as_kind=Kind.GROUP)
    expected = sorted({*CROWD_SEES, "c33", "c99"} - {"c00", "c02", "c07"})

    assert catalogs(crowd, node=node) == expected
    assert catalogs(crowd, node=Node(crowd.lab.open())) == expected


# -- comparison with the model -------------------------------------------------------------------------------------


class Story:
    """Random changes of a lake. After each change the lists of two nodes are compared with the model."""

    def __init__(self, desk: ServiceDesk, seed: int) -> None:
        self.desk = desk
        self.random = random.Random(seed)
        self.nodes = [desk.node, Node(desk.lab.open())]
        self.made = 0

    def objects(self, *kinds: Kind) -> list[tuple[Kind, tuple[str, ...]]]:
        """Return all live objects of some kinds, with their paths below the catalog."""
        model = BrowsingModel(self.desk.rows, "ana")
        live_objects = []
        for each, (_, kind, _name) in model.nodes.items():
            if kind in kinds:
                live_objects.append((KINDS[kind], tuple(model.nodes[at][2] for at in reversed(model.chain(each)[:-1]))))
        return sorted(live_objects)

    def some(self, *kinds: Kind) -> tuple[Kind, tuple[str, ...]]:
        """Choose a random object."""
        return self.random.choice(self.objects(*kinds))

    def step(self) -> None:
        """Make a random change. A change that the server refuses has no effect."""
        change: Callable[[], None] = self.random.choices(
            [self.rule, self.give, self.make, self.drop, self.move, self.join], weights=[8, 4, 4, 3, 4, 1]
        )[0]
        try:
            change()
        except (AlreadyExists, BadRequest, IllegalPrivilege, NotEmpty, NotFound):
            return

    def rule(self) -> None:
        """Allow or deny a privilege, or remove the rule."""
        kind, path = self.some(Kind.CATALOG, Kind.NAMESPACE, Kind.NAMESPACE, Kind.TABLE, Kind.TABLE)
        name = ".".join([path[0], ":".join(path[1:])][: len(path)])
        if kind is Kind.TABLE:
            name = ".".join([path[0], ":".join(path[1:-1]), path[-1]])
        allowed = {Kind.CATALOG: RIGHTS, Kind.NAMESPACE: RIGHTS[1:], Kind.TABLE: RIGHTS[2:]}[kind]
        role = self.random.choice(("yes", "yes", "ours", "no"))
        privilege = self.random.choice(allowed)
        grant(self.desk, kind, name, privilege, role=role, takes=self.random.random() < 0.35)

    def give(self) -> None:
        """Transfer an object."""
        kind, path = self.some(Kind.NAMESPACE, Kind.TABLE, Kind.TABLE)
        name = ".".join(
            [path[0], ":".join(path[1:])] if kind is Kind.NAMESPACE else [path[0], ":".join(path[1:-1]), path[-1]]
        )
        who, as_kind = self.random.choice((("ana", Kind.USER), ("admin", Kind.USER), ("crew", Kind.GROUP)))
        own(self.desk, kind, name, who, as_kind=as_kind)

    def make(self) -> None:
        """Create a namespace or a table, sometimes as ana."""
        _, path = self.some(Kind.CATALOG, Kind.NAMESPACE, Kind.NAMESPACE)
        self.made += 1
        if len(path) > 1 and self.random.random() < 0.6:
            self.desk.table(*path[1:], f"t{self.made}", scope=RequestScope(LAKE, path[0]))
        elif len(path) < 5:
            self.desk.namespace(*path[1:], f"n{self.made}", scope=RequestScope(LAKE, path[0]))

    def drop(self) -> None:
        """Drop or restore an object."""
        if self.random.random() < 0.5:
            scope = RequestScope(LAKE, self.random.choice(("main", "other")))
            trash_entries = self.desk.run(
                trash_list(self.desk.ctx(), scope, below=(), before=(2**62, 2**62), limit=50)
            ).entries
            if trash_entries:
                dropped = self.random.choice(trash_entries)
                self.desk.run(trash_restore(self.desk.ctx(), scope, dropped_id=dropped.row.id))
            return
        kind, path = self.some(Kind.NAMESPACE, Kind.TABLE, Kind.TABLE)
        scope = RequestScope(LAKE, path[0])
        if kind is Kind.TABLE:
            self.desk.run(table_drop(self.desk.ctx(), scope, namespace=path[1:-1], name=path[-1], purge=False))
        else:
            self.desk.run(namespace_drop(self.desk.ctx(), scope, levels=path[1:]))

    def move(self) -> None:
        """Move or rename an object within its catalog."""
        kind, path = self.some(Kind.NAMESPACE, Kind.TABLE)
        places = [each for _, each in self.objects(Kind.CATALOG, Kind.NAMESPACE) if each[0] == path[0]]
        self.made += 1
        target = (*self.random.choice(places)[1:], f"m{self.made}")
        scope = RequestScope(LAKE, path[0])
        if kind is Kind.TABLE and len(target) > 1:
            self.desk.run(table_move(self.desk.ctx(), scope, source=path[1:], target=target))
        elif kind is Kind.NAMESPACE and len(target) < 5:
            self.desk.run(namespace_move(self.desk.ctx(), scope, source=path[1:], target=target))

    def join(self) -> None:
        """Add ana to the group, or remove her."""
        if self.random.random() < 0.6:
            self.desk.run(members_add(self.desk.ctx(), metalake=LAKE, group="crew", users=("ana",)))
        else:
            self.desk.run(member_remove(self.desk.ctx(), metalake=LAKE, group="crew", user="ana"))

    def check(self) -> None:
        """Compare each node's lists with the model."""
        model = BrowsingModel(self.desk.rows, "ana")
        expected = {path: model.namespaces(each) for path, each in model.containers().items()}
        for node in self.nodes:
            assert catalogs(self.desk, node=node) == model.catalogs()
            assert {path: listed(self.desk, *path, node=node) for path in expected} == expected
            request = MetadataRequest(dataset="Dataverse")
            seen = self.desk.run(metadata_gather(node.ctx("ana"), [request], few_max=10_000))[request].few or []
            implicit = {row[0] for row in self.desk.rows("SELECT id FROM node WHERE implicit")}
            containers = model.containers()
            walked = {path[1:] for path in model.dataverses("main") if containers[path] not in implicit}
            assert {each.path for each in seen if each.id} == walked


@pytest.mark.parametrize("seed", range(3))
def test_lists_match_the_model_after_random_changes(lake: ServiceDesk, seed: int) -> None:
    """After each of many random changes, two nodes list the same catalogs, namespaces and dataverses as the model."""
    story = Story(lake, seed)
    for _ in range(8):
        story.make()
    for _ in range(40):
        story.step()
        story.check()
