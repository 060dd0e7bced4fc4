# SPDX-License-Identifier: Apache-2.0
"""The response cache: a cached response equals a fresh one after every commit, on each node and for each caller.

Two caching nodes over one store are compared with a third node that caches nothing. Each bug that is planted at the end
removes one safeguard of the cache, and a story must then fail.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from limnos.http import response_cache
from limnos.http.application import Application
from limnos.http.response_cache import SENT_AGAIN, CacheableRequest, CachedResponse, ResponseCache
from limnos.model.errors import ServiceUnavailable
from limnos.services.request.cache_validity import CacheDependencies, ZoneDependencies
from limnos.telemetry.metrics import request_seconds, requests
from limnos.view.freshness_gate import GATE_READS
from tests.backends import Database, PostgresServer
from tests.http.driver import API, OWN, DriverAnswer, DriverNode, grant, node_at
from tests.http.iceberg.wire import ROOT, SCHEMA, SPACES, make_space, make_table, space_path, table_path
from tests.http.sockets import ServedNode, SocketWire
from tests.http.sockets import SocketAnswer as WireAnswer
from tests.http.sockets import request as wire_request

pytestmark = pytest.mark.slow

Fresh = Callable[[str], Path]
Patch = pytest.MonkeyPatch
TABLE = table_path("a", "t")
BECAUSE = (("quiet",), ("stands",))


class Town(NamedTuple):
    """Two nodes that cache answers and one that does not, over one store."""

    one: DriverNode
    two: DriverNode
    plain: DriverNode


@contextmanager
def town_over(data: Path, url: str | None) -> Iterator[Town]:
    """Create the three nodes with table `a.t`, which ana may select."""
    with ExitStack() as stack:
        one, two = (stack.enter_context(node_at(data, database=url)) for _ in range(2))
        plain = stack.enter_context(node_at(data, database=url, kept_bytes_max=0))
        make_table(one, "a", "t")
        grant(one, "ana", "use_catalog use_schema select_table", kind="CATALOG", on="main")
        yield Town(one, two, plain)


@pytest.fixture
def town(fresh: Fresh) -> Iterator[Town]:
    """Three nodes over SQLite."""
    with town_over(fresh("data"), None) as nodes:
        yield nodes


@pytest.fixture
def any_town(fresh: Fresh, database: Database) -> Iterator[Town]:
    """Three nodes over each store backend."""
    with town_over(fresh("data"), None if database.kind == "sqlite" else database.address) as nodes:
        yield nodes


def again() -> int:
    """Return the number of answers that were sent from the cache."""
    return int(sum(SENT_AGAIN[because] for because in BECAUSE))


def normalize_answer(answer: DriverAnswer) -> tuple[object, ...]:
    """Return an answer without the fields that depend on the caller."""
    headers = {name: value for name, value in answer.headers.items() if name != "x-request-id"}
    body = answer.body.replace(answer.headers["x-request-id"].encode(), b"")
    return answer.status, tuple(headers.items()), body


def compare(town: Town, method: str, target: str, *, user: str | None = "ana", **headers: str) -> DriverAnswer:
    """Send a request to both caching nodes and the other one: all three answers must be equal."""
    true = town.plain.ask(method, target, user=user, **headers)
    for node in (town.one, town.two):
        assert normalize_answer(node.ask(method, target, user=user, **headers)) == normalize_answer(true), (
            f"{method} {target} for {user}"
        )
    return true


def gravitino(target: str) -> str:
    """Return the URL of the same table over Gravitino REST."""
    *_, space, _, name = target.split("/")
    return f"{API}/lake/catalogs/main/schemas/{space}/tables/{name}"


def look(town: Town, target: str = TABLE, *, user: str | None = "ana", **headers: str) -> int:
    """Load a table by every route. Returns the status of the load."""
    statuses = [
        compare(town, method, f"{target}{query}", user=user, **headers).status
        for method in ("GET", "HEAD")
        for query in ("", "?snapshots=refs")
    ]
    for other in (target, gravitino(target)):
        compare(town, "GET", other.rpartition("/")[0], user=user, **headers)
    compare(town, "GET", gravitino(target), user=user, **headers)
    return statuses[0]


def settle(town: Town, target: str = TABLE, *, user: str | None = "ana", **headers: str) -> int:
    """Repeat requests until every answer that can be cached is sent from the cache.

    Both caching nodes send four answers about the table and two lists from it; a HEAD with a query is not cached.
    """
    for _ in range(2):
        look(town, target, user=user, **headers)
    before = again()
    status = look(town, target, user=user, **headers)
    assert again() - before == 2 * 6
    return status


def commit(node: DriverNode, target: str = TABLE, **properties: str) -> None:
    """Set properties of a table."""
    node.done("POST", target, {"requirements": [], "updates": [{"action": "set-properties", "updates": properties}]})


# ------------------------------------------------------------------------------------------------- the stories


def story_of_a_commit(town: Town) -> None:
    """A commit through either node is visible at the next request on both, and an earlier ETag gives no 304."""
    assert settle(town) == 200
    etag = town.one.get(TABLE, user="ana").headers["etag"]
    assert settle(town, if_none_match=etag) == 304
    for node in (town.one, town.two, town.plain):
        commit(node, who=str(id(node)))

        assert look(town, if_none_match=etag) == 200
        assert settle(town) == 200


def story_of_a_grant(town: Town) -> None:
    """A revoke and a grant take effect at the next request."""
    settle(town)
    role = grant(town.two, "bob", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    assert settle(town, user="bob") == 200

    town.two.done("PUT", f"{API}/lake/permissions/users/bob/revoke", {"roleNames": [role]})

    assert look(town, user="bob") == 403
    assert look(town) == 200


def story_of_a_disabled_user(town: Town) -> None:
    """A disabled user gets no cached answers."""
    assert settle(town) == 200

    town.two.done("PATCH", f"{OWN}/metalakes/lake/users/ana", {"enabled": False})

    assert look(town) == 403


def story_of_a_token(town: Town) -> None:
    """A revoked token is refused at the next request, and one that expires at its expiry."""
    created_token = town.one.done("POST", f"{OWN}/tokens", {"user": "ana", "name": "first"})
    bearer = {"authorization": f"Bearer {created_token['token']}"}
    assert settle(town, user=None, **bearer) == 200
    town.two.ask("DELETE", f"{OWN}/tokens/{created_token['id']}")

    assert look(town, user=None, **bearer) == 401


def story_of_an_hour(town: Town) -> None:
    """A token expires even if nothing is committed."""
    created_token = town.one.done("POST", f"{OWN}/tokens", {"user": "ana", "name": "short", "expires_in_s": 3600})
    bearer = {"authorization": f"Bearer {created_token['token']}"}
    assert settle(town, user=None, **bearer) == 200

    with Patch.context() as patch:
        for node in town:
            time = node.built.services.store.time
            later = time.now_ms() + 3_601_000
            patch.setattr(time, "now_ms", lambda later=later: later, raising=True)
        assert look(town, user=None, **bearer) == 401


def story_of_two_people(town: Town) -> None:
    """A cached answer for a user with the right is not sent to a user without it, nor to a caller without
    credentials.
    """
    assert settle(town) == 200
    town.one.done("POST", f"{API}/lake/users", {"name": "eve"})

    assert settle(town) == 200
    assert look(town, user="eve") == 403
    assert look(town, user=None) == 401


def story_of_other_commits(town: Town) -> None:
    """While other tables of the catalog are committed to, a cached answer is sent only after the freshness gate."""
    make_table(town.one, "a", "other")
    settle(town)
    for number in range(5):
        commit(town.two, table_path("a", "other"), number=str(number))
        gate_reads, before = GATE_READS["arrival",], SENT_AGAIN["stands",]
        for node in (town.one, town.two):
            assert node.ask("HEAD", TABLE, user="ana").status == 204

        assert GATE_READS["arrival",] - gate_reads == 2
        assert SENT_AGAIN["stands",] - before == 2


def story_of_names(town: Town) -> None:
    """After moves, drops and creates of a table, and renames of a namespace and a catalog, answers are current."""
    make_space(town.one, "b")
    settle(town)
    for source, target in ((["a"], ["b"]), (["b"], ["a"])):
        body = {"source": {"namespace": source, "name": "t"}, "destination": {"namespace": target, "name": "t"}}
        town.two.ask("POST", f"{ROOT}/tables/rename", body)
        look(town)
        settle(town, table_path(*target, "t"))
    town.two.ask("DELETE", TABLE)
    assert look(town) == 404
    make_table(town.two, "a", "t")
    assert settle(town) == 200
    town.two.done("PUT", f"{API}/lake/catalogs/main", {"updates": [{"@type": "rename", "newName": "other"}]})
    assert look(town) in (403, 404)


def story_of_a_file(town: Town) -> None:
    """A missing metadata file is detected at the next load without any commit, and so is its return."""
    assert settle(town) == 200
    location = str(town.one.get(TABLE, user="ana")["metadata-location"]).removeprefix("file://")
    file = Path(location)
    data = file.read_bytes()
    file.unlink()

    assert look(town) == 404
    file.write_bytes(data)
    assert settle(town) == 200


def story_of_a_catalog(town: Town) -> None:
    """Requests to a disabled catalog get no cached answers."""
    assert settle(town) == 200
    town.two.done("PATCH", f"{API}/lake/catalogs/main", {"inUse": False})
    assert look(town) not in (200, 204)
    town.two.done("PATCH", f"{API}/lake/catalogs/main", {"inUse": True})
    assert settle(town) == 200


def story_of_a_fresh_view(town: Town) -> None:
    """After a reset of the view, an unchanged store does not validate older cached answers."""
    settle(town)
    view = town.one.built.services.view
    view.reset(view.epoch)
    before = again()

    assert town.one.ask("HEAD", TABLE, user="ana").status == 204
    assert again() == before, f"HEAD {TABLE} for ana is sent from the cache"


def story_of_lists(town: Town) -> None:
    """The next list has created objects and omits dropped ones."""
    settle(town)
    for number in range(3):
        make_table(town.two, "a", f"t{number}")
        assert len(compare(town, "GET", f"{space_path('a')}/tables").json()["identifiers"]) == number + 2
    town.one.ask("DELETE", table_path("a", "t1"))
    assert len(compare(town, "GET", f"{space_path('a')}/tables").json()["identifiers"]) == 3


def story_of_chance(town: Town) -> None:
    """Cached answers equal fresh ones after random operations in any order."""
    dice = random.Random(20)
    names = [("a", "t"), ("a", "u"), ("b", "t")]
    for space in ("b",):
        make_space(town.one, space)
    roles = [
        grant(town.one, user, what, kind=kind, on=on)
        for user, what, kind, on in (
            ("bob", "use_catalog", "CATALOG", "main"),
            ("bob", "use_schema select_table", "SCHEMA", "main.a"),
            ("eve", "use_catalog use_schema modify_table", "CATALOG", "main"),
        )
    ]

    def mutate(node: DriverNode) -> None:
        name, other = dice.choice(names), dice.choice(names)
        role, user = dice.choice(roles), dice.choice(("ana", "bob", "eve"))
        match dice.randrange(9):
            case 0 | 1:
                node.ask(
                    "POST",
                    f"{space_path(name[0])}/tables",
                    {"name": name[1], "schema": {"type": "struct", "fields": []}},
                )
            case 2 | 3 | 4:
                update = {"action": "set-properties", "updates": {"n": str(dice.random())}}
                node.ask("POST", table_path(*name), {"requirements": [], "updates": [update]})
            case 5:
                node.ask("DELETE", table_path(*name))
            case 6:
                sides = [{"namespace": [each[0]], "name": each[1]} for each in (name, other)]
                node.ask("POST", f"{ROOT}/tables/rename", {"source": sides[0], "destination": sides[1]})
            case 7:
                how = dice.choice(("grant", "revoke"))
                node.ask("PUT", f"{API}/lake/permissions/users/{user}/{how}", {"roleNames": [role]})
            case _:
                node.ask("PATCH", f"{OWN}/metalakes/lake/users/{user}", {"enabled": dice.random() < 0.7})

    for _ in range(60):
        if dice.random() < 0.5:
            mutate(dice.choice(town))
        name, user = dice.choice(names), dice.choice(("ana", "bob", "eve"))
        for _ in range(2):
            compare(town, dice.choice(("GET", "HEAD")), table_path(*name), user=user)
            compare(town, "GET", f"{space_path(name[0])}/tables", user=user)
            compare(town, "GET", gravitino(table_path(*name)), user=user)


STORIES = {
    name.removeprefix("story_of_").removeprefix("a_"): story
    for name, story in globals().items()
    if name.startswith("story_of_")
}


@pytest.mark.parametrize("name", STORIES)
def test_cached_answers_equal_those_of_an_uncached_node(any_town: Town, name: str) -> None:
    """In each story cached answers equal those of a node without a cache."""
    STORIES[name](any_town)


# --------------------------------------------------------------------------------------------- the planted bugs


def _without(*fields: str) -> Callable[[Patch], None]:
    """Planted bug: some dependencies of an answer are not compared."""

    def bug(patch: Patch) -> None:
        real = CacheDependencies.stands

        def stands(self: CacheDependencies, view: object) -> bool:
            zones = [view.zones[zone] for zone in self.zones]  # type: ignore[attr-defined]
            now = {
                "settled": view.scopes.get(self.scope),  # type: ignore[attr-defined]
                "token": zones[0].memo.get(self.credential) if self.token is not None else None,
                "user_status": zones[1].memo.get(self.user_status_key),
                "decision": zones[2].memo.get(self.decision_key),
                "path": zones[2].paths.get(self.path_key),
                "facts": tuple((key, view.get(key)) for key, _ in self.facts),  # type: ignore[attr-defined]
            }
            return real(self._replace(**{field: now[field] for field in fields}), view)  # type: ignore[arg-type]

        patch.setattr(CacheDependencies, "stands", stands)

    return bug


def _without_revisions(patch: Patch) -> None:
    """Planted bug: the revisions of the zones of a list are not compared."""
    patch.setattr(ZoneDependencies, "stands", lambda self, view: view.is_paired(self.zones))


def _without_inner_revisions(patch: Patch) -> None:
    """Planted bug: only the revision of the server is compared for a list."""
    patch.setattr(
        ZoneDependencies, "stands", lambda self, view: view.known_revisions(self.zones[:1]) == self.revisions[:1]
    )


def _no_gate(patch: Patch) -> None:
    """Planted bug: the gate is skipped."""

    async def is_still_valid(self: Application, answer: CachedResponse) -> bool:
        is_valid = self.response_cache._lasts(answer.validity)
        SENT_AGAIN["stands",] += is_valid
        return is_valid

    patch.setattr(Application, "_is_still_valid", is_still_valid)


def _no_gate_before_ground(patch: Patch) -> None:
    """Planted bug: the conditions are checked against the view before this request."""

    async def is_still_valid(self: Application, answer: CachedResponse) -> bool:
        return self.response_cache.is_valid_after_gate(answer)

    patch.setattr(Application, "_is_still_valid", is_still_valid)


def _moment_after(patch: Patch) -> None:
    """Planted bug: an answer is stored with the store's moment at that time, not the moment of its read."""
    real = ResponseCache.is_valid_now

    def is_valid_now(self: ResponseCache, answer: object) -> bool:
        answer.moment = self._moment()  # type: ignore[attr-defined]
        return real(self, answer)  # type: ignore[arg-type]

    patch.setattr(ResponseCache, "is_valid_now", is_valid_now)


def _for_ever(patch: Patch) -> None:
    """Planted bug: the expiry of tokens is ignored."""
    patch.setattr(ResponseCache, "_lasts", lambda self, validity: validity.file is None or self._exists(validity.file))


def _file_not_asked(patch: Patch) -> None:
    """Planted bug: the metadata file is not checked."""
    patch.setattr(
        ResponseCache,
        "_lasts",
        lambda self, validity: validity.expires_ms is None or validity.expires_ms > self._time.now_ms(),
    )


def _across_users(patch: Patch) -> None:
    """Planted bug: an answer cached for one user is sent to all users."""
    patch.setattr("limnos.http.application.dependencies_of", lambda headers: (headers.get(b"if-none-match"),))


def _across_etags(patch: Patch) -> None:
    """Planted bug: an answer cached for one If-None-Match is sent for all values."""
    patch.setattr("limnos.http.application.dependencies_of", lambda headers: (headers.get(b"authorization"),))


def _across_methods(patch: Patch) -> None:
    """Planted bug: an answer cached for HEAD is given for GET."""
    patch.setattr("limnos.http.application.key_of", lambda method, url, depends: ("GET", url, depends))


def _without_generation(patch: Patch) -> None:
    """Planted bug: a reset of the view is ignored."""
    real = ResponseCache.is_valid_now

    def is_valid_now(self: ResponseCache, answer: CachedResponse) -> bool:
        answer.generation = self._view.generation
        return real(self, answer)

    patch.setattr(ResponseCache, "is_valid_now", is_valid_now)


def detect(town: Town, bug: Callable[[Patch], None], story: str) -> None:
    """Run a story with a planted bug: it must fail at an answer, not at the number of answers from the cache."""
    with Patch.context() as patch:
        bug(patch)
        with pytest.raises(AssertionError, match=r"^(GET|HEAD) /"):
            STORIES[story](town)


_RIGHTS = ("decision", "user_status")
"""A change of access removes these from the view, so other dependencies that are compared may already cover them."""
BUGS: dict[str, tuple[Callable[[Patch], None], str]] = {
    "kept without asking the gate": (_no_gate, "commit"),
    "the view of before this request": (_no_gate_before_ground, "commit"),
    "kept beyond expiry": (_for_ever, "an_hour"),
    "file not asked for": (_file_not_asked, "file"),
    "kept across users": (_across_users, "two_people"),
    "kept across etags": (_across_etags, "commit"),
    "kept across methods": (_across_methods, "commit"),
    "document not compared": (_without("facts"), "commit"),
    "names not compared": (_without("path", "facts", *_RIGHTS), "names"),
    "scope not compared": (_without("settled", *_RIGHTS), "catalog"),
    "rights not compared": (_without(*_RIGHTS), "grant"),
    "rights of the disabled not compared": (_without(*_RIGHTS), "disabled_user"),
    "token not compared": (_without("token", *_RIGHTS), "token"),
    "revisions not compared": (_without_revisions, "lists"),
    "revisions of grants not compared": (_without_inner_revisions, "grant"),
}
"""Each planted bug, with the story that detects it."""
BUGS_OF_THE_MARKER: dict[str, tuple[Callable[[Patch], None], str]] = {
    "kept with a later moment": (_moment_after, "commit"),
    "kept without the generation": (_without_generation, "fresh_view"),
}
"""Bugs of the comparison with the store's marker of its last commit, which only SQLite has."""


@pytest.mark.parametrize("name", BUGS)
def test_injected_bug_is_detected_by_its_story(any_town: Town, name: str) -> None:
    """With the bug, its story gets a wrong answer."""
    detect(any_town, *BUGS[name])


@pytest.mark.parametrize("name", BUGS_OF_THE_MARKER)
def test_injected_bug_of_the_commit_marker_is_detected_by_its_story(town: Town, name: str) -> None:
    """With the bug, its story gets an answer that it must not get."""
    detect(town, *BUGS_OF_THE_MARKER[name])


# ------------------------------------------------------------------------------------------- the rest of it


def test_cached_answers_are_counted_and_logged(town: Town) -> None:
    """A cached answer has its own request id, and is counted and logged like others."""
    settle(town)
    lines: list[tuple[object, ...]] = []
    log = type("Log", (), {"add": staticmethod(lines.append)})()
    key = ("iceberg", "load-table", 200)
    counted, observed = requests[key], sum(request_seconds.rows[key[:2]][:-1])
    with Patch.context() as patch:
        patch.setattr(town.one.built.application.outcomes, "request_log", log)
        before = again()
        answers = [town.one.get(TABLE, user="ana") for _ in range(2)]
        assert again() - before == 2
    assert requests[key] - counted == 2
    assert sum(request_seconds.rows[key[:2]][:-1]) - observed == 2
    assert len({answer.headers["x-request-id"] for answer in answers}) == 2
    assert [line[2] for line in lines] == [answer.headers["x-request-id"] for answer in answers]
    assert [line[3:9] for line in lines] == [("GET", TABLE.encode(), "load-table", 200, "ana", "")] * 2
    assert [line[9] for line in lines] == [len(answers[0].body)] * 2


def test_cache_size_is_limited_in_bytes(town: Town) -> None:
    """The cache is limited in bytes, does not store answers beyond the limit of one answer, and stores nothing with a
    budget of zero.
    """
    answers = town.one.built.application.response_cache
    for number in range(30):
        make_table(town.one, "a", f"n{number}")
    answers.bytes_max = 40_000
    for _ in range(2):
        for number in range(30):
            assert town.one.get(table_path("a", f"n{number}"), user="ana").status == 200

    assert 0 < answers._young_bytes + answers._old_bytes <= 60_000
    assert len(answers) <= 30
    answers.bytes_max = 100
    size = len(answers)
    assert town.one.get(table_path("a", "t"), user="ana").status == 200
    assert len(answers) <= size
    assert not town.plain.built.application.response_cache.is_on
    assert len(town.plain.built.application.response_cache) == 0


def test_refused_cached_answer_is_removed_from_the_cache(any_town: Town) -> None:
    """A cached answer that is refused to its caller is removed from the cache, and the next request takes at most one
    query.
    """
    node, application = any_town.one, any_town.one.built.application
    assert [node.get(TABLE, user="ana").status for _ in range(2)] == [200, 200]
    size_before = len(application.response_cache)
    node.patch(f"{OWN}/metalakes/lake/users/ana", {"enabled": False})
    assert node.get(TABLE, user="ana").status == 403
    before = node.built.services.store.statements

    assert node.get(TABLE, user="ana").status == 403

    assert node.built.services.store.statements - before <= 1
    assert len(application.response_cache) == size_before - 1


def test_list_outlives_commits_in_other_catalogs(any_town: Town) -> None:
    """A cached list is sent again after a commit in another catalog, and built again after one in its own."""
    node, path = any_town.one, f"{space_path('a')}/tables"
    other = {"name": "other", "type": "RELATIONAL", "provider": "lakehouse-iceberg"}
    node.done("POST", f"{API}/lake/catalogs", other)
    for _ in range(2):
        node.get(path, user="ana")
    before = again()
    node.done("POST", f"{API}/lake/catalogs/other/schemas", {"name": "s", "comment": "", "properties": {}})
    node.get(path, user="ana")
    assert again() - before == 1

    make_table(node, "a", "u")

    assert b'"u"' in node.get(path, user="ana").body
    assert again() - before == 1


def test_paths_with_a_plus_are_not_cached(town: Town) -> None:
    """Paths with a plus are not cached, because their meaning depends on the client."""
    make_table(town.one, "a", "x y")
    for agent in ("GoIceberg/0.1", "Java") * 2:
        compare(town, "HEAD", f"{space_path('a')}/tables/x+y", user_agent=agent)

    assert response_cache.key_of("GET", b"/a+b", ()) is None


def test_answers_are_sent_after_the_freshness_check_without_a_store_moment(town: Town) -> None:
    """If the store cannot report whether anything was committed (`moment` returns None), cached lists and tables are
    sent only after the freshness check.
    """
    answers = town.one.built.application.response_cache
    with Patch.context() as patch:
        patch.setattr(answers, "_moment", lambda: None)
        before = SENT_AGAIN["stands",]
        for method, path in (("GET", f"{space_path('a')}/tables"), ("HEAD", TABLE)):
            for _ in range(3):
                town.one.ask(method, path, user="ana")
        assert SENT_AGAIN["stands",] - before == 2 * 2
    assert answers.begin(("GET", b"/", ())) == CacheableRequest(
        ("GET", b"/", ()), answers._moment(), answers._view.generation
    )


# ------------------------------------------------------------------------------- behind a gate that must be awaited


@pytest.fixture
def served(tmp_path: Path, postgres_server: PostgresServer) -> Iterator[ServedNode]:
    """A node over PostgreSQL on real sockets, with `a.t`."""
    node = ServedNode(tmp_path, lane=True, database=postgres_server.fresh_database().address, request_timeout_s=2.0)
    for path, body in ((SPACES, {"namespace": ["a"]}), (f"{SPACES}/a/tables", {"name": "t", "schema": SCHEMA})):
        assert send_request(node, "POST", path, body).status == 200
    yield node
    node.stop()


def send_request(node: ServedNode, method: str, path: str, body: object = None) -> WireAnswer:
    """Send one request on a new connection."""
    with closing(SocketWire(node.port)) as wire:
        wire.send(wire_request(method, path, None if body is None else json.dumps(body).encode()))
        return wire.answer(bodiless=method == "HEAD")


@pytest.mark.integration
def test_cached_answer_waits_for_the_freshness_check(served: ServedNode) -> None:
    """Over PostgreSQL, the fast path sends a cached answer only after the freshness gate. After a commit it sends
    another answer.
    """
    first = send_request(served, "GET", TABLE)
    before = SENT_AGAIN["stands",]
    for _ in range(3):
        again = send_request(served, "GET", TABLE)
        assert (again.status, again.body) == (200, first.body)
        assert again.headers["x-request-id"] != first.headers["x-request-id"]
    assert SENT_AGAIN["stands",] - before == 3

    update = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"k": "v"}}]}
    assert send_request(served, "POST", TABLE, update).status == 200

    after = send_request(served, "GET", TABLE)
    assert b'"k":"v"' in after.body
    assert after.headers["etag"] != first.headers["etag"]
    assert SENT_AGAIN["stands",] - before == 3


@pytest.mark.integration
def test_silent_freshness_check_returns_503_in_time(served: ServedNode) -> None:
    """If the gate fails, the request gets its error without another check, which would take as long again; if it does
    not answer, the request is 503 in time.
    """
    send_request(served, "GET", TABLE)
    store = served.built.services.store
    real = store.gate_async  # type: ignore[union-attr]
    calls: list[int] = []

    async def fails_once(*arguments: object) -> object:
        calls.append(1)
        if len(calls) == 1:
            raise ServiceUnavailable("no answer", retry_after_s=1)
        return await real(*arguments)

    async def silent(*_: object) -> object:
        return await asyncio.Event().wait()

    with Patch.context() as patch:
        patch.setattr(store, "gate_async", fails_once)
        assert (send_request(served, "GET", TABLE).status, len(calls)) == (503, 1)
        assert send_request(served, "GET", TABLE).status == 200
        assert len(calls) == 2
        patch.setattr(store, "gate_async", silent)
        late = send_request(served, "GET", TABLE)
        assert late.status == 503
        assert late.headers["retry-after"] == "5"
    assert not served.built.application.deadlines._late
