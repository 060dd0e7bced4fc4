# SPDX-License-Identifier: Apache-2.0
"""Hints of error messages: each is a complete next command that has the promised effect."""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Callable

import pytest

from limnos.cli.main import main
from limnos.client import Client
from tests.integration.live import LiveServer
from tests.integration.test_cli import CommandResult, make_table

COMMAND = re.compile(r"'(limnos (?:[^']|'\"'\"')*)'")
Typed = Callable[[str], CommandResult]


@pytest.fixture
def typed(server: LiveServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Typed:
    """Run a command line, by default as the admin; errors are JSON."""
    for name in [name for name in os.environ if name.upper().startswith("LIMNOS")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("LIMNOS_URI", server.uri)
    monkeypatch.setenv("LIMNOS_TOKEN_FILE", str(server.data / "admin.token"))

    def call(line: str) -> CommandResult:
        code = main(shlex.split(line))
        captured = capsys.readouterr()
        return CommandResult(code, captured.out, captured.err)

    return call


def _wait_for_the_index(server: LiveServer) -> None:
    """Wait until a search finds the table: a word alone is answered by what searches find."""
    until = time.monotonic() + 300
    with Client(server.uri, token=server.token) as client:
        while client.searches.find("t").behind and time.monotonic() < until:
            time.sleep(0.1)


@pytest.fixture(scope="module")
def furnished(server: LiveServer) -> None:
    """A catalog `hints` with a table, a role, and `nil`, a user without rights."""
    flags = ["--uri", server.uri, "--token-file", str(server.data / "admin.token")]
    for line in (
        "create catalog hints",
        "create namespace hints.a",
        "create namespace hints.a.b",
        "user add nil",
        "user add eve",
        "role create hinted",
        "create catalog brim",
        "create namespace brim.x",
        "create metalake second",
        "group create hinters",
        "create tag hinting",
        "create catalog hintfiles --type fileset",
        "create namespace hintfiles.a",
        "create fileset hintfiles.a.f",
    ):
        assert main([*shlex.split(line), *flags]) == 0, line
    make_table(server, "a", "t", catalog="hints")
    _wait_for_the_index(server)
    assert main(["grant", "--preset", "reader", "hints", "--to", "user:eve", *flags]) == 0


@pytest.mark.usefixtures("furnished")
@pytest.mark.parametrize(
    "line,expected",
    [
        (
            "create namespace hints.x.y.z --property k=v",
            ["limnos create namespace hints.x.y.z --property k=v --parents"],
        ),
        ("create namespace hints.a", ["limnos show hints.a"]),
        (
            "describe hints.a.t --user nil",
            [
                "limnos list --user nil",
                "limnos request access hints.a.t --user nil",
                "limnos access explain table_load hints.a.t --user nil",
            ],
        ),
        (
            "describe hints.a --user nil",
            [
                "limnos list --user nil",
                "limnos request access hints.a --kind namespace --user nil",
                "limnos access explain namespace_load_iceberg hints.a --user nil",
            ],
        ),
        (
            "ls hints.a --user nil --kind namespace",
            [
                "limnos list --user nil",
                "limnos request access hints --user nil",
                "limnos access explain namespace_list hints --user nil",
            ],
        ),
        (
            "mv hints.a.t hints.a.u --kind table --user nil",
            [
                "limnos list --user nil",
                "limnos request access hints.a.t --preset writer --user nil",
                "limnos access explain table_rename hints.a.t --kind table --user nil",
            ],
        ),
        (
            "drop hints.a.t --kind table --user nil",
            ["limnos list --user nil", "limnos access explain table_drop hints.a.t --user nil"],
        ),
        (
            "drop hints --user nil",
            ["limnos list --user nil", "limnos access explain catalog_drop hints --kind catalog --user nil"],
        ),
        (
            "create catalog more --user nil",
            ["limnos show owner lake --kind metalake --user nil", "limnos access explain catalog_create --user nil"],
        ),
        (
            "user add x --user nil",
            ["limnos show owner lake --kind metalake --user nil", "limnos access explain user_manage --user nil"],
        ),
        (
            "role create x --user nil",
            ["limnos show owner lake --kind metalake --user nil", "limnos access explain role_create --user nil"],
        ),
        ("role describe hinted --user nil", ["limnos access explain role_load hinted --kind role --user nil"]),
        ("role delete hinted --yes --user nil", ["limnos access explain role_drop hinted --kind role --user nil"]),
        ("group describe nobody --user nil", ["limnos access explain group_load nobody --kind group --user nil"]),
        ("user describe nobody", ["limnos list users"]),
        ("user remove nobody --yes", ["limnos list users"]),
        ("group describe nobody", ["limnos list groups"]),
        ("group add nobody nil", ["limnos list groups"]),
        ("role describe nothing", ["limnos list roles"]),
        ("grant role nothing --to nil", ["limnos list roles"]),
        ("grant role hinted --to nobody", ["limnos list users"]),
        ("grant role hinted --to-group nobody", ["limnos list groups"]),
        ("owner set hints nobody", ["limnos list users"]),
        ("token revoke 999999999 --yes", ["limnos list tokens"]),
        ("describe nowhere", ["limnos list"]),
        ("describe hints.nowhere", ["limnos list hints"]),
        ("describe hints.a.nowhere --metalake lake", ["limnos list hints.a --metalake lake"]),
        ("ls hints.a.nowhere", ["limnos list hints.a"]),
        ("drop hints.a --yes", ["limnos list hints.a", "limnos delete hints.a --recursive"]),
        ("undrop hints.a.gone", ["limnos list trash hints"]),
        ("trash rm hints 999999999 --yes", ["limnos list trash hints"]),
        ("webhook retry 999999999", ["limnos list webhooks"]),
        ("mv hints.a.t hints.gone.t", ["limnos list hints"]),
        ("reports hints.a.nowhere", ["limnos list hints.a"]),
    ],
)
def test_hint_is_a_command_that_runs(typed: Typed, line: str, expected: list[str]) -> None:
    """The hint of an error is a complete command, which succeeds when it is run unchanged."""
    failed = typed(line)

    hint = str(failed.error.get("hint"))
    assert failed.code in {1, 3, 4, 5}, failed
    assert COMMAND.findall(hint) == expected, failed.error
    for command in expected:
        if "--recursive" in command:
            continue  # it would delete what other lines need
        refused = 7 if "access explain" in command else 0  # `access explain` explains a refusal
        assert typed(command.removeprefix("limnos ")).code == refused, command


@pytest.mark.usefixtures("furnished")
@pytest.mark.parametrize(
    "line,expected",
    [
        ("show a.t", "limnos show hints.a.t"),
        ("show t", "limnos show hints.a.t"),
        ("show lake.hints.a.t", "limnos show hints.a.t"),
        ("show hints/a/t", "limnos show hints.a.t"),
        ("list lake/hints", "limnos list hints"),
        ("show hint.a", "limnos show hints.a"),
        ("head hints.b.t", "limnos list hints"),
        ("list hints.a.t", "limnos show hints.a.t"),
        ("files hints.a.t", "limnos show hints.a.t"),
        ("reports hints.a", "limnos list hints.a"),
        ("show table hints.a.t.n", "limnos show hints.a.t"),
        ("show hints.a.t.n", "limnos show hints.a.t"),
        ("delete table hints.a --yes", "limnos list hints.a"),
        ("list lake", "limnos list"),
        ("show HINTS.A.T", "limnos show hints.a.t"),
        ("delete table hints.a.T --yes", "limnos show hints.a.t"),
    ],
)
@pytest.mark.parametrize("user", ["", " --user eve"])
def test_wrong_path_is_answered_by_what_it_is(typed: Typed, line: str, expected: str, user: str) -> None:
    """A path of another kind, without its catalog or with the metalake's name is answered by what it is, or by the
    nearest visible path, for a reader as for the admin: no answer advises to ask for access.
    """
    failed = typed(f"{line}{user}")

    assert failed.code in {2, 3, 4}, failed
    assert COMMAND.findall(str(failed.error["hint"])) == [f"{expected}{user}"], failed.error
    assert "authorized" not in str(failed.error["message"])
    assert typed(f"{expected}{user}".removeprefix("limnos ")).code == 0


@pytest.mark.usefixtures("furnished")
@pytest.mark.parametrize("line", ["show lake", "set owner lake admin"])
def test_name_of_the_metalake_is_answered_by_its_kind(typed: Typed, line: str) -> None:
    """A command for an object of any kind takes the metalake with `--kind metalake`."""
    again = COMMAND.findall(str(typed(line).error["hint"]))

    assert [each.rpartition(" --kind ")[2] for each in again] == ["metalake"]
    assert typed(again[0].removeprefix("limnos ")).code == 0


@pytest.mark.usefixtures("furnished")
def test_refusal_that_no_preset_mends_names_who_may_grant(typed: Typed) -> None:
    """A refused deletion names the owner of the object, and a refused change of users the command that has the owner of
    the metalake.
    """
    deleted, created = typed("delete hints.a.t --yes --user eve"), typed("create user zed --user eve")

    assert (deleted.code, created.code) == (4, 4)
    assert str(deleted.error["hint"]).startswith("hints.a.t is owned by user admin, who may do or grant it; ")
    (shows, *_) = COMMAND.findall(str(created.error["hint"]))
    assert typed(shows.removeprefix("limnos ")).code == 0


@pytest.mark.usefixtures("furnished")
def test_revoked_preset_of_a_user_without_one_is_answered(typed: Typed) -> None:
    """A preset that was never granted is no missing role of a name that nobody typed."""
    failed = typed("revoke --preset reader hints.a.t --from user:nil")

    assert (failed.code, failed.error["message"]) == (3, "user nil was granted no preset: there is no role user:nil")
    assert typed("access what nil").code == 0


@pytest.mark.usefixtures("furnished")
def test_hidden_and_missing_paths_have_the_same_answer(typed: Typed) -> None:
    """A user who may know of no object gets one answer for an existing and for a missing path, and it says that access
    is worth a request only if the object exists.
    """
    hidden, missing = typed("show hints.a.t --user nil"), typed("show hinte.a.t --user nil")

    assert str(missing.error["message"]).replace("hinte", "hints") == hidden.error["message"]
    assert str(missing.error["hint"]).replace("hinte", "hints") == hidden.error["hint"]
    assert "asks for access, if you were told that it exists" in str(hidden.error["hint"])


@pytest.mark.usefixtures("furnished")
def test_hint_for_catalog_with_contents_has_two_ways(typed: Typed) -> None:
    """A catalog with contents is emptied after it was disabled, or deleted with all of them: either way is complete."""
    hint = str(typed("drop brim --yes").error.get("hint"))

    assert COMMAND.findall(hint) == ["limnos catalog disable brim", "limnos delete brim --yes -r"]
    assert typed("delete brim --yes -r").code == 0


@pytest.mark.usefixtures("furnished")
@pytest.mark.parametrize("line", ["ls hints.gone", "create namespace hints.a", "create namespace hints.x.y"])
def test_message_names_the_catalog(typed: Typed, line: str) -> None:
    """Iceberg's error for a namespace omits the catalog; the command line adds it."""
    assert str(typed(line).error["message"]).endswith(" in catalog hints")


@pytest.mark.usefixtures("furnished")
def test_message_about_missing_object_has_its_whole_path(typed: Typed) -> None:
    """A path without a kind may be that of a namespace, a table or a view; the message has it with its catalog."""
    message = str(typed("describe hints.gone").error["message"])

    assert message == "there is no namespace, table or view 'hints.gone', or you may not know of it"


@pytest.mark.usefixtures("furnished")
def test_explained_misspelling_advises_no_grant(typed: Typed) -> None:
    """If an admin misspells a path, the explanation says that the object does not exist, and suggests no grant."""
    output = typed("access explain table_load hints.a.tt --for nil --output table").out

    assert "There is no table hints.a.tt" in output
    assert "Grant" not in output


@pytest.mark.usefixtures("furnished")
def test_path_with_too_many_parts_is_answered_by_the_quoted_name(typed: Typed) -> None:
    """A path of which several parts are missing says which part is, and how to write one name that has dots."""
    failed = typed("show hints.a.ver.1.x")
    one = typed("show hints.a.ver")

    hint = str(failed.error.get("hint"))
    assert COMMAND.findall(hint) == ["limnos list hints.a"]
    assert "it has no ver that you see" in hint
    assert hint.endswith("as in limnos show 'hints.a.`ver.1.x`'")
    assert "back-quotes" not in str(one.error.get("hint"))


@pytest.mark.usefixtures("furnished")
def test_word_of_sql_as_an_action_is_answered_by_the_action(typed: Typed) -> None:
    """`access explain select` names the action that means it, in the message and in the command."""
    failed = typed("access explain select hints.a.t")

    assert "did you mean table_read?" in str(failed.error["message"])
    assert COMMAND.findall(str(failed.error.get("hint"))) == ["limnos access explain table_read hints.a.t"]


@pytest.mark.usefixtures("furnished")
@pytest.mark.parametrize(
    "line,expected",
    [
        ("show second.hints", "limnos show hints --metalake second"),
        ("set second --comment x", "limnos set second --comment x --kind metalake"),
        ("list second", "limnos list --metalake second"),
        ("delete second.hints --yes", "limnos show hints --metalake second"),
        ("set tag hints.a.t hinting", "limnos set tag hinting hints.a.t"),
        ("set owner eve hints.a", "limnos set owner hints.a eve"),
        ("group add eve hinters", "limnos group add hinters eve"),
        ("access who eve", "limnos access what eve"),
        ("show eve", "limnos show user eve"),
        ("show hinted", "limnos show role hinted"),
        ("show hinting", "limnos show tag hinting"),
        ("list restrictions eve", "limnos access what eve"),
        ("list tags hinting", "limnos show tag hinting"),
        ("create namespace hints/x", "limnos create namespace hints.x"),
        (
            "set restriction r hints.a.t --filter x=1 --to eve",
            "limnos set restriction r hints.a.t --filter x=1 --to user:eve",
        ),
        ("head hints.a.t --snapshot 1", "limnos list snapshots hints.a.t"),
        ("list everything", "limnos list --recursive"),
        ("list masks", "limnos list restrictions PATH"),
        ("revoke token eve", "limnos list tokens --for eve"),
        ("list snapshots hints.a", "limnos audit --path hints.a"),
        ("list snapshots hints.a.b", "limnos list hints.a.b"),
        ("ls hintfiles.a.f/1", "limnos files hintfiles.a.f /1"),
        ("delete hintfiles.a.f/1/model.bin", "limnos files hintfiles.a.f /1/model.bin"),
        ("show 'hints. a'", "limnos show hints.a"),
        ("grant --preset reader hintz.a.t --to eve", "limnos grant --preset reader hints.a.t --to eve"),
        ("access explain select_table hints.a.t", "limnos access explain table_read hints.a.t"),
        ("head hints.a.t --rows 500", "limnos head hints.a.t --rows 200"),
        ("set hints.a.t --tag hinting=yes", "limnos set hints.a.t --property hinting=yes"),
        ("job cancel 77", "limnos list jobs"),
        ("create catalog 'my hints'", "limnos create catalog my_hints"),
    ],
)
def test_exchanged_or_misplaced_name_is_answered_by_the_command_to_type(typed: Typed, line: str, expected: str) -> None:
    """A metalake before a path, exchanged arguments, a file in a path and a value of another tool are answered by the
    command that does what was meant.
    """
    failed = typed(line)

    assert failed.code != 0
    assert COMMAND.findall(str(failed.error["hint"]))[0] == expected


@pytest.mark.usefixtures("furnished")
def test_location_is_no_path(typed: Typed) -> None:
    """A location of a store is answered by the lists of catalogs and filesets, not by a path made of it."""
    assert COMMAND.findall(str(typed("ls s3://bucket").error["hint"])) == ["limnos list", "limnos find kind:fileset"]
