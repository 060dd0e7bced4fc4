# SPDX-License-Identifier: Apache-2.0
"""The command line with a real server process: every command, and the errors for a user with few rights."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from limnos.cli.main import main
from tests.integration.live import LiveServer

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "type": "long", "required": True}]}


@dataclass(frozen=True)
class CommandResult:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    @property
    def result(self) -> object:
        """Standard output as JSON."""
        assert self.code == 0, self.err
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, object]:
        """The error that was written to standard error as JSON."""
        document: dict[str, dict[str, object]] = json.loads(self.err)
        return document["error"]


Run = Callable[..., CommandResult]


@pytest.fixture(scope="module")
def node(server: LiveServer) -> LiveServer:
    """The shared server; tests use names of their own."""
    return server


@pytest.fixture(autouse=True)
def _environment(node: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands are sent as the administrator, unless a test states otherwise."""
    for name in [name for name in os.environ if name.upper().startswith("LIMNOS")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("LIMNOS_URI", node.uri)
    monkeypatch.setenv("LIMNOS_TOKEN_FILE", str(node.data / "admin.token"))


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command line, given as one text or as words."""

    def call(*words: str) -> CommandResult:
        code = main(words[0].split() if len(words) == 1 else words)
        captured = capsys.readouterr()
        return CommandResult(code, captured.out, captured.err)

    return call


def make_table(node: LiveServer, namespace: str, name: str, *, catalog: str = "main") -> None:
    """Create an Iceberg table, as an engine does."""
    answer = httpx2.post(
        f"{node.uri}/iceberg/v1/lake.{catalog}/namespaces/{namespace}/tables",
        json={"name": name, "schema": SCHEMA},
        headers={"Authorization": f"Bearer {node.token}"},
        trust_env=False,
    )
    assert answer.status_code == 200, answer.text


def names(done: CommandResult) -> list[str]:
    """Return the names of a list."""
    assert isinstance(done.result, list)
    return [row["name"] for row in done.result]


def test_admin_token_works_on_a_new_store_with_catalog_main(run: Run, node: LiveServer) -> None:
    """The admin's token works at once, and a new store has metalake `lake` and catalog `main`."""
    assert run("whoami").result == {"user": "admin", "server": node.uri}
    assert "main" in names(run("ls"))
    assert "lake" in names(run("ls --kind metalake"))


def test_metalake_and_catalog_are_created_and_dropped(run: Run, tmp_path: Path) -> None:
    """A metalake and a catalog are created, described, not dropped while they have children, and dropped."""
    assert run("create metalake sea --comment deep --property k=v").code == 0
    assert run(f"create catalog lab --warehouse {tmp_path} --metalake sea --comment trial").code == 0

    catalog = run("describe lab --metalake sea").result
    metalake = run("describe --metalake sea").result
    run("create namespace lab.full --metalake sea")
    refused_drops = [run("drop lab --metalake sea"), run("drop sea --kind metalake")]
    emptied = run("drop lab.full --metalake sea")

    assert isinstance(catalog, dict)
    assert (catalog["provider"], catalog["comment"]) == ("lakehouse-iceberg", "trial")
    assert isinstance(metalake, dict)
    assert (metalake["comment"], metalake["properties"]["k"]) == ("deep", "v")
    assert [(done.code, done.error["code"]) for done in refused_drops] == [(5, "in-use"), (5, "in-use")]
    assert emptied.code == 0
    assert run("drop lab --metalake sea").code == 0
    assert run("drop sea --kind metalake").code == 0
    assert run("drop sea --kind metalake").code == 4  # as in Gravitino: a metalake that does not exist has no users


def test_namespaces_nest_move_and_drop(run: Run) -> None:
    """Nested namespaces are created in one command, listed by level, moved with their descendants, and dropped when
    empty.
    """
    assert run("create namespace main.tree.a.b --parents --property k=v").code == 0
    assert run("create namespace main.tree.other").code == 0
    assert names(run("ls main.tree")) == ["main.tree.a", "main.tree.other"]

    described = run("describe main.tree.a.b").result
    again = run("create namespace main.tree.other")
    full = run("drop main.tree")
    moved = run("mv main.tree.a main.tree.other.a2").result
    cycle = run("mv main.tree.other main.tree.other.a2.x --kind namespace")

    assert isinstance(described, dict)
    assert described["properties"]["k"] == "v"
    assert (again.code, again.error["code"]) == (5, "already-exists")
    assert (full.code, full.error["code"]) == (5, "not-empty")
    assert isinstance(moved, dict)
    assert moved["target"] == "main.tree.other.a2"
    assert (cycle.code, "below itself" in str(cycle.error["message"])) == (1, True)
    assert names(run("ls main.tree.other")) == ["main.tree.other.a2"]
    assert names(run("ls main.tree.other.a2")) == ["main.tree.other.a2.b"]
    for path in ("main.tree.other.a2.b", "main.tree.other.a2", "main.tree.other", "main.tree"):
        assert run(f"drop {path}").code == 0
    assert run("describe main.tree").code == 3


def test_names_of_any_kind_work(run: Run) -> None:
    """Names with dots, slashes, spaces, percent signs and letters of any script are accepted in back-quotes."""
    wild = ["a.b", "c/d", "e f", "50%", "größe", "`tick`"]
    run("create", "namespace", "main.wild")
    for name in wild:
        quoted = name.replace("`", "\\`")
        assert run("create", "namespace", f"main.wild.`{quoted}`").code == 0

    listed = run("ls main.wild").result

    assert isinstance(listed, list)
    assert sorted(row["path"][-1] for row in listed) == sorted(wild)
    for row in listed:
        assert run("describe", row["name"]).code == 0
        assert run("drop", row["name"]).code == 0


def test_table_is_shown_moved_and_dropped(run: Run, node: LiveServer) -> None:
    """A table of an engine is listed, described, moved and dropped."""
    run("create namespace main.shop")
    make_table(node, "shop", "orders")

    listed = run("ls main.shop").result
    described = run("describe main.shop.orders").result
    moved = run("mv main.shop.orders main.shop.sales")

    assert listed == [{"name": "main.shop.orders", "kind": "table", "path": ["main", "shop", "orders"]}]
    assert isinstance(described, dict)
    assert described["columns"] == {"id": "long required"}
    assert moved.code == 0
    assert names(run("ls main.shop")) == ["main.shop.sales"]
    assert run("drop main.shop.sales --purge").code == 0
    assert run("describe main.shop.sales").code == 3


def test_users_groups_and_roles_are_managed(run: Run) -> None:
    """Users, groups with members, and roles are created, listed, described and removed."""
    assert run("user add ana").code == 0
    assert run("user add ana").code == 5
    assert run("group create staff").code == 0
    assert run("role create reader").code == 0
    assert run("group add staff ana").result == {"group": "staff", "members": ["ana"]}
    assert run("grant role reader --to ana").code == 0
    assert run("grant role reader --to-group staff").code == 0

    user = run("user describe ana").result
    group = run("group describe staff").result

    assert user == {"name": "ana", "enabled": True, "roles": ["reader"], "groups": ["staff"]}
    assert group == {"name": "staff", "roles": ["reader"], "members": ["ana"]}
    assert "ana" in names(run("user list"))
    assert "staff" in names(run("group list"))
    assert "reader" in names(run("role list"))
    assert run("revoke role reader --from ana").code == 0
    assert run("revoke role reader --from-group staff").code == 0
    assert run("group remove staff ana").code == 0
    assert run("group remove staff ana").code == 3
    assert run("role delete reader").code == 0
    assert run("role delete reader").code == 3
    assert run("group delete staff").code == 0
    assert run("user remove ana").code == 0
    assert run("user remove ana").code == 3
    assert run("user describe ana").code == 3


def test_refused_show_is_one_refusal_in_the_audit(run: Run, node: LiveServer) -> None:
    """A refused `show` without `--kind` is one refused request, and its answer has the command that asks for access,
    which works, and an owner that the caller may know.
    """
    run("create namespace main.cellar")
    make_table(node, "cellar", "wine")
    run("user add cleo")
    run("grant --preset reader main --to user:cleo")
    run("create namespace main.vault")
    make_table(node, "vault", "gold")
    run("role create keyless")
    run("grant select_table --on main.vault.gold --to keyless --deny")
    run("grant role keyless --to cleo")
    run("user add dora")

    allowed = run("show main.cellar.wine --user cleo")
    denied = run("show main.vault.gold --user cleo")
    refused = run("show main.cellar.wine --user dora")
    lines = run("audit --who dora --outcome refused").result
    request = run("request access main.cellar.wine --user dora")

    assert allowed.code == 0, allowed.err
    assert "request access" not in denied.err  # a denial is lifted by no preset
    assert refused.code == 4
    assert "'limnos request access main.cellar.wine --user dora' asks for access" in str(refused.error["hint"])
    assert isinstance(lines, list)
    assert len(lines) == 1, lines
    assert request.code == 0, request.err
    assert len(run("audit --who dora --outcome refused").result) == 1


def test_missing_object_is_answered_by_a_close_sibling(run: Run) -> None:
    """A path that does not exist is answered by the typed command with the close, visible name."""
    run("create namespace main.warehouse_a")

    missing = run("show main.warehous_a")
    catalog = run("show mian")

    assert missing.code == catalog.code == 3
    assert str(missing.error["hint"]) == "did you mean 'limnos show main.warehouse_a'?"
    assert str(catalog.error["hint"]) == "did you mean 'limnos show main'?"


def test_grants_decide_the_very_next_request(run: Run, node: LiveServer) -> None:
    """A user is denied with the missing privilege named, allowed at the next request after the grant, and denied after
    the revoke.
    """
    run("create namespace main.hall")
    make_table(node, "hall", "things")
    run("user add ben")
    run("role create visitor")
    run("grant role visitor --to ben")
    load = ("describe", "main.hall.things", "--kind", "table", "--user", "ben")

    refused = run(*load)
    granted = [
        run("grant use_catalog --on main --to visitor"),
        run("grant use_schema select_table --on main.hall --to visitor"),
    ]
    allowed = run(*load)
    role = run("role describe visitor").result
    revoked = run("revoke select_table --on main.hall --from visitor")
    again = run(*load)

    assert refused.code == 4
    assert "USE_CATALOG" in str(refused.error["message"])
    assert [done.code for done in granted] == [0, 0]
    assert allowed.code == 0
    assert isinstance(role, dict)
    assert {(row["privilege"], row["kind"]) for row in role["grants"]} == {
        ("use_catalog", "catalog"),
        ("use_schema", "namespace"),
        ("select_table", "namespace"),
    }
    assert (revoked.code, again.code) == (0, 4)
    assert "SELECT_TABLE" in str(again.error["message"])


def test_denial_beats_allowance(run: Run, node: LiveServer) -> None:
    """A denied privilege overrides a wider grant, until the denial is revoked."""
    run("create namespace main.vault.inner --parents")
    make_table(node, "vault%1Finner", "gold")
    run("user add dan")
    run("role create keeper")
    run("grant role keeper --to dan")
    run("grant use_catalog use_schema select_table --on main --to keeper")
    load = ("describe", "main.vault.inner.gold", "--kind", "table", "--user", "dan")

    before = run(*load)
    denied = run("grant select_table --on main.vault.inner.gold --to keeper --deny")
    during = run(*load)
    back = run("revoke select_table --on main.vault.inner.gold --from keeper --deny")
    after = run(*load)

    assert [before.code, denied.code, during.code, back.code, after.code] == [0, 0, 4, 0, 0]


def test_explain_names_the_missing_privilege(run: Run, node: LiveServer) -> None:
    """`access explain` names the missing privilege and suggests a change, for the caller and, to an admin, for other
    users.
    """
    run("create namespace main.maze")
    make_table(node, "maze", "exit")
    run("user add max")

    explanation = run("access explain table_load main.maze.exit --user max")
    own = json.loads(explanation.out)
    output = run("access explain table_load main.maze.exit --for max --output table").out
    nosy = run("access explain table_load main.maze.exit --for admin --user max")
    admin = run("access explain table_load main.maze.exit").result

    assert explanation.code == 7
    assert own["decision"]["allowed"] is False
    assert any(factor["privilege"] == "SELECT_TABLE" for factor in own["decision"]["factors"])
    assert output.startswith("REFUSED")
    assert nosy.code == 4
    assert isinstance(admin, dict)
    assert admin["decision"]["allowed"] is True


def test_owners_are_shown_and_changed(run: Run) -> None:
    """The creator owns an object; the owner can be changed to a user or a group, for every kind."""
    run("create namespace main.estate.east --parents")
    run("user add olga")
    run("group create heirs")
    run("role create steward")

    first = run("owner show main.estate.east").result
    to_user = run("owner set main.estate.east olga")
    to_group = run("owner set steward heirs --group --kind role")
    second = run("owner show main.estate.east").result
    third = run("owner show steward --kind role").result

    assert isinstance(first, dict)
    assert (first["owner"], first["owner_type"]) == ("admin", "user")
    assert (to_user.code, to_group.code) == (0, 0)
    assert isinstance(second, dict)
    assert second["owner"] == "olga"
    assert isinstance(third, dict)
    assert (third["owner"], third["owner_type"]) == ("heirs", "group")
    assert run("owner show main").code == 0
    assert run("owner show lake --kind metalake").code == 0


def test_disabled_user_is_refused_everywhere(run: Run, node: LiveServer) -> None:
    """A disabled user is refused with any credential until the user is enabled again."""
    run("user add tom")
    secret = run("token create --for tom --name t").result
    assert isinstance(secret, dict)
    token = secret["token"]

    before = run(f"whoami --token {token}")
    disabled = run("user disable tom")
    during = [run("describe --user tom").code, run(f"describe --token {token}").code]
    listed = run("user list").result
    enabled = run("user enable tom")
    after = run(f"describe --token {token}")

    assert before.result == {"user": "tom", "server": node.uri}
    assert disabled.result == {"name": "tom", "enabled": False}
    assert during == [4, 4]
    assert isinstance(listed, list)
    assert {row["name"]: row["enabled"] for row in listed}["tom"] is False
    assert enabled.result == {"name": "tom", "enabled": True}
    assert after.code == 0


def test_tokens_are_made_listed_and_revoked(run: Run, node: LiveServer, tmp_path: Path) -> None:
    """A token works until it is revoked; its secret is shown once."""
    file = tmp_path / "my.token"
    token = run("token", "create", "--name", "ci", "--expires-in", "1h", "--save", str(file)).result
    assert isinstance(token, dict)
    token_id = str(token["id"])

    works = run("whoami", "--token-file", str(file))
    listed = run("token list").result
    everyone = run("token list --all")
    revoked = run("token", "revoke", token_id, "--yes")
    dead = run("whoami", "--token-file", str(file))

    assert works.result == {"user": "admin", "server": node.uri}
    assert isinstance(listed, list)
    row = next(row for row in listed if str(row["id"]) == token_id)
    assert (row["name"], row["user"], row["revoked"]) == ("ci", "admin", False)
    assert row["expires_at"] is not None
    assert token_id in everyone.out
    assert file.read_text(encoding="utf-8").strip() not in json.dumps(listed)
    assert revoked.code == 0
    assert (dead.code, dead.error["code"]) == (4, "unauthenticated")
    assert run("token", "revoke", token_id, "--yes").code == 3


def test_caller_without_credential_has_no_rights(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a credential the caller is `anonymous`, has no rights, and is asked to sign in."""
    monkeypatch.delenv("LIMNOS_TOKEN_FILE")

    who = run("whoami")
    refused = run("ls")
    wrong = run("whoami --token nonsense")

    assert who.code == refused.code == 4
    assert "is anonymous" in str(who.error["message"])
    assert "--token-file" in str(refused.error["hint"])
    assert wrong.code == 4


def test_config_and_migrate_work_beside_a_running_server(run: Run, node: LiveServer) -> None:
    """`server config` and `server migrate` work on the data directory of a running server."""
    config = run("server", "config", "--data", str(node.data)).result
    migrated = run("server", "migrate", "--data", str(node.data))

    assert isinstance(config, list)
    assert {"setting": "server.data", "value": str(node.data), "origin": "flag --data"} in config
    assert migrated.code == 0, migrated.err


def test_restored_store_in_use_is_left_alone(run: Run, node: LiveServer) -> None:
    """`server migrate --restored` beside a running server changes nothing, and says how to go on; the server's tokens
    stay valid.
    """
    refused = run("server", "migrate", "--restored", "--data", str(node.data))
    who = run("whoami")

    assert refused.code == 1
    message = refused.err
    assert "A server uses the store" in message
    assert "revoke all tokens" in message
    assert "--force" in message
    assert who.code == 0, who.err


def test_restored_store_is_served_with_unused_ids(run: Run, node: LiveServer) -> None:
    """After `server migrate --restored` a running server serves the restored objects, and its next id is far above the
    old ones.
    """
    run("create", "namespace", "main.before_restore")
    migration = run("server", "migrate", "--restored", "--keep-tokens", "--force", "--data", str(node.data))
    run("create", "namespace", "main.after_restore")
    listed = run("ls", "main").result

    assert migration.code == 0, migration.err
    assert "new ids are greater" in migration.out
    assert isinstance(listed, list)
    assert {"main.before_restore", "main.after_restore"} <= {row["name"] for row in listed}
    with sqlite3.connect(node.data / "limnos.db") as connection:
        ids = dict(connection.execute("SELECT name, id FROM node WHERE name LIKE '%_restore' AND deleted = 0"))
    assert ids["after_restore"] > ids["before_restore"] + 2**20


def test_server_check_accepts_a_fresh_directory(run: Run, tmp_path: Path) -> None:
    """`server check` reports no problem for a directory that can be created, and exits with 0."""
    done = run("server", "check", "--data", str(tmp_path / "fresh"), "--listen", "127.0.0.1:0")

    assert (done.code, done.out.strip()) == (0, "[]")


def test_fileset_and_model_kinds_are_detected_by_path(run: Run) -> None:
    """The kinds of filesets and models are detected by path. A fileset shows its locations, a model its versions. A
    second drop fails.
    """
    for name, kind in (("files", "fileset"), ("learned", "model")):
        assert run("create", "catalog", name, "--type", kind, "--provider", kind).code == 0
        assert run("create", "namespace", f"{name}.s").code == 0

    created_fileset = run("create", "fileset", "files.s.scans", "--comment", "c", "--property", "a=1").result
    assert run("create", "model", "learned.s.churn", "--property", "b=2").code == 0

    assert isinstance(created_fileset, dict)
    assert (created_fileset["type"], created_fileset["properties"]["a"]) == ("managed", "1")
    listed = [run("ls", path).result for path in ("files.s", "learned.s")]
    assert [[(each["name"], each["kind"]) for each in rows] for rows in listed] == [  # type: ignore[attr-defined]
        [("files.s.scans", "fileset")],
        [("learned.s.churn", "model")],
    ]
    fileset, model = (run("describe", path).result for path in ("files.s.scans", "learned.s.churn"))
    assert isinstance(fileset, dict)
    assert isinstance(model, dict)
    assert (fileset["kind"], fileset["comment"], fileset["locations"]) == ("fileset", "c", created_fileset["locations"])
    assert (model["kind"], model["properties"], model["versions"], model["aliases"]) == ("model", {"b": "2"}, {}, {})
    assert run("owner", "show", "learned.s.churn").result["owner"] == "admin"  # type: ignore[index]
    assert run("create", "fileset", "files.s.more", "--location", "nowhere").code == 2
    for path in ("files.s.scans", "learned.s.churn"):
        assert run("drop", path, "--yes").result["dropped"] == path  # type: ignore[index]
        assert run("drop", path, "--yes").code != 0
