# SPDX-License-Identifier: Apache-2.0
"""Every room agrees with the table of kinds; a failure names the kind and the aspect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, get_args

import pytest

from limnos.access.actions import Action
from limnos.access.browsing import LISTED_IN_CATALOGS
from limnos.access.policy import ITEMS, POLICY
from limnos.access.restrictions import RESTRICTED_KINDS
from limnos.access.rules import ByKind, OwnerRule
from limnos.cli import common
from limnos.cli.catalog import describe, removal
from limnos.cli.identity import owners
from limnos.client.catalog.objects import Objects
from limnos.client.flow import ClientScope
from limnos.client.paths import TYPES
from limnos.http.admin.catalog import transactions
from limnos.model.declared_kinds import DECLARED, DeclaredKind
from limnos.model.kind_table import (
    ANY_CATALOG,
    CLI_PARTS,
    KIND_TABLE,
    ONLY_KINDS,
    VERBS,
    Exclusion,
    KindRow,
    name_space_of,
    no,
)
from limnos.model.kinds import (
    ICEBERG_PROVIDER,
    NAMESPACE_OBJECTS,
    SECURABLES,
    SOURCE_PROVIDERS,
    TABLE_FORMATS,
    Kind,
    KindGroup,
    ZoneKind,
)
from limnos.model.privileges import BINDS, Privilege
from limnos.model.proto.limnos.v1.export_pb2 import Entity, ExportRecord
from limnos.model.records import NODE_RECORDS
from limnos.model.storage_locations import OF_CATALOGS, LocationKind
from limnos.rooms.exchange.formats.messages import EXPORTERS
from limnos.rooms.exchange.services import import_rows
from limnos.rooms.pipelines.services import lineage
from limnos.rooms.sqlpp.services.execution import metadata
from limnos.rooms.sqlpp.services.requests import errors as sqlpp_errors
from limnos.services.federation import placeholder_nodes
from limnos.services.governance.attachments import HOLDERS
from limnos.services.lookup.securables import parse_kind
from limnos.services.upkeep import trash
from limnos.store.objects import attachments as stored_attachments
from limnos.view.facts import TOUCHED
from tests.house.declared_words import word_problems

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def _rules(action: Action) -> frozenset[Kind]:
    """Return the kinds that an action's rule has a case for."""
    rule = POLICY[action]
    return frozenset(rule.rules) if isinstance(rule, ByKind) else frozenset()


def _actions(kind: Kind) -> frozenset[str]:
    """Return the verbs of the actions `<kind>_<verb>` that shared code composes."""
    return frozenset(verb for verb in VERBS if f"{kind.word}_{verb}" in {action.word for action in Action})


OPERATIONS: Final = frozenset(str(each.__struct_config__.tag) for each in get_args(transactions.AnyOperation))
CLI_KINDS: Final = {
    "path": ("Kind in cli/common.py", frozenset(get_args(common.Kind))),
    "owner": ("OwnedKind in cli/identity/owners.py", frozenset(get_args(get_args(get_args(owners.OwnedKind)[0])[0]))),
    "explain": ("ExplainedKind in cli/common.py", frozenset(get_args(common.ExplainedKind))),
    "drop": ("_DROPPED in cli/catalog/removal.py", frozenset(removal._DROPPED)),
    "describe": ("_FOUND in cli/catalog/describe.py", describe.DESCRIBED),
}
"""For each part of the command line, the position of its words for kinds, and the words."""
OWN_RECORDS: Final = ("metalake", "catalog")
"""Nodes for which `rooms/exchange/services/metalake_export.py` has records."""


def _gravitino(kind: Kind, row: KindRow) -> Iterator[str]:
    if kind in SECURABLES and not row.gravitino:
        yield "grants, owners and tags name it by this type: give one"
    if row.gravitino and (parse_kind(row.gravitino) is not kind or TYPES[kind.word] != row.gravitino):
        yield f"'{row.gravitino}' is read as a {parse_kind(row.gravitino).word}"


def _gravitino_error(_: Kind, row: KindRow) -> Iterator[str]:
    if row.gravitino_error and not row.gravitino_error[0].isupper():
        yield f"'{row.gravitino_error}' is no part of a Java class name"


def _sqlpp(kind: Kind, row: KindRow) -> Iterator[str]:
    if row.sqlpp and not (row.sqlpp in sqlpp_errors._UNKNOWN and row.sqlpp in sqlpp_errors._EXISTS):
        yield f"no errors for a missing and a taken {row.sqlpp}; add them in rooms/sqlpp/services/requests/errors.py"
    if row.sqlpp and kind not in {each for kinds in metadata._KINDS.values() for each in kinds}:
        yield "no dataset of the metadata shows it; add one to _KINDS in rooms/sqlpp/services/execution/metadata.py"


def _name_space(kind: Kind, row: KindRow) -> Iterator[str]:
    owner = Kind.__members__.get((row.name_space or "").upper())
    if not row.name_space:
        yield "every kind has a name space: its own word, or that of the kind whose names it shares"
    elif name_space_of(kind) != row.name_space:
        yield f"names are looked up in '{name_space_of(kind)}'"
    elif owner is None or KIND_TABLE[owner].name_space != row.name_space:
        yield f"no kind is called '{row.name_space}'"


def _catalogs(kind: Kind, row: KindRow) -> Iterator[str]:
    lies_in_catalog = kind.home is ZoneKind.CATALOG and kind.is_node
    if lies_in_catalog != bool(row.catalogs):
        yield "say which providers' catalogs hold it" if lies_in_catalog else "it lies in no catalog"
    for provider in row.catalogs or ():
        if provider not in (ANY_CATALOG, *TABLE_FORMATS, *ONLY_KINDS, *SOURCE_PROVIDERS):
            yield f"'{provider}' is no provider"
        if provider in ONLY_KINDS and ONLY_KINDS[provider] is not kind:
            yield f"catalogs of provider {provider} hold {ONLY_KINDS[provider].word}s and nothing else"


def _verbs(kind: Kind, row: KindRow) -> Iterator[str]:
    verbs = row.verbs or ()
    for verb in sorted(_actions(kind) - set(verbs)):
        yield f"the action {kind.word}_{verb} exists, and the row does not name it"
    for verb in verbs:
        if verb not in _actions(kind):
            yield f"no action {kind.word}_{verb}; add it in access/actions.py"
        elif Action(f"{kind.word}_{verb}") not in POLICY:
            yield f"no rule for {kind.word}_{verb}; add it in access/policy.py"
    if "list" in _actions(kind) and Action(f"{kind.word}_list") not in ITEMS:
        yield (
            f"no action filters the items of {kind.word}_list; add"
            f" {kind.word}_{'see' if kind in NAMESPACE_OBJECTS else 'load'}"
        )
    if kind in NAMESPACE_OBJECTS and f"{kind.word}_list" not in {action.word for action in LISTED_IN_CATALOGS}:
        yield f"browsing does not know {kind.word}_list; LISTED_IN_CATALOGS in access/browsing.py lacks it"
    if kind.is_node and kind not in _rules(Action.METADATA_LOAD):
        yield "no rule of metadata_load; add <kind>_load in access/policy.py"


def _privileges(kind: Kind, row: KindRow) -> Iterator[str]:
    privileges = {word.upper() for word in row.privileges or ()}
    for word in sorted(privileges - set(Privilege.__members__)):
        yield f"no privilege {word}; add it in model/privileges.py"
    bound = {each.name for each, kinds in BINDS.items() if kind in kinds and each is not Privilege.MANAGE_GRANTS}
    if kind.form is not KindGroup.CONTAINER and bound != privileges & set(Privilege.__members__):
        yield f"{', '.join(sorted(bound ^ privileges))} can be granted on it or in the row only"


def _owned(kind: Kind, row: KindRow) -> Iterator[str]:
    named = {each for leaf in POLICY[Action.OWNER_SET].leaves() if isinstance(leaf, OwnerRule) for each in leaf.kinds}
    if bool(row.owned) != (kind in Action.OWNER_SET.kinds):
        yield "owner_set disagrees; see access/actions.py"
    if row.owned and kind not in named:
        yield "no rule says that its owner may give it away; see _OWNER_SET in access/policy.py"
    if kind.is_node and not row.owned:
        yield "every row of `node` has an owner"


def _attachable(kind: Kind, row: KindRow) -> Iterator[str]:
    if bool(row.attachable) != (kind in HOLDERS):
        yield "HOLDERS in services/governance/attachments.py disagrees"
    if kind in NAMESPACE_OBJECTS and not row.attachable:
        yield "tags and policies are inherited by everything in a catalog"


def _attached_as(kind: Kind, row: KindRow) -> Iterator[str]:
    if row.attached_as and "apply" not in (row.verbs or ()):
        yield f"no action {kind.word}_apply"
    if bool(row.attached_as) != (kind in stored_attachments._OF):
        yield "store/objects/attachments.py disagrees"
    if bool(row.attached_as) != (kind in {each for _, each in import_rows._ATTACHED.values()}):
        yield "an import attaches nothing of it; add a link to _ATTACHED in rooms/exchange/services/import_rows.py"


def _protected(kind: Kind, row: KindRow) -> Iterator[str]:
    for action in (Action.PROTECT, Action.UNPROTECT):
        if bool(row.protected) != (kind in _rules(action)):
            yield f"the rule of {action.word} disagrees; see access/policy.py"
    if kind in NAMESPACE_OBJECTS and not row.protected:
        yield "everything in a catalog can be protected"


def _restricted(kind: Kind, row: KindRow) -> Iterator[str]:
    if not (bool(row.restricted) == (kind in RESTRICTED_KINDS) == (kind in Action.RESTRICT.kinds)):
        yield "access/restrictions.py disagrees"


def _trash(kind: Kind, row: KindRow) -> Iterator[str]:
    if kind.home is ZoneKind.CATALOG and kind.is_node and not row.trash:
        yield "what is dropped in a catalog lies in its trash; say `trash=True` and add <kind>_create and <kind>_drop"
    if bool(row.trash) != (kind in _rules(Action.UNDROP)):
        yield "no rule of undrop, which is that of <kind>_drop; see access/policy.py"
    if bool(row.trash) != (kind in trash._CREATES):
        yield "no right to restore it; add <kind>_create in access/actions.py"


def _export(kind: Kind, row: KindRow) -> Iterator[str]:
    if kind.is_node and not row.export:
        yield "an export has every row of `node` of a metalake; give its record a field in export.proto"
    field, _, rest = (row.export or "").partition(".")
    if not field:
        return
    if field not in ExportRecord.DESCRIPTOR.fields_by_name or field not in import_rows._TAKE:
        yield f"'{field}' is no record that is exported by rooms/exchange/formats and imported by rooms/exchange/services"
    if kind.is_node and field not in OWN_RECORDS and kind not in EXPORTERS:
        yield "no exporter; register one in EXPORTERS of rooms/exchange/formats/messages.py"
    if not rest:
        return
    entity_field = Entity.DESCRIPTOR.fields_by_name.get(rest)
    if entity_field is None:
        yield f"no field '{rest}' in Entity.rest of export.proto"
    elif kind in NODE_RECORDS and (message_name := str(getattr(entity_field.message_type, "name", ""))) != _message(
        kind
    ):
        yield f"Entity.{rest} is a {message_name}, and the node's record is a {_message(kind)}"


def _message(kind: Kind) -> str:
    """Return the name of the Protobuf message that the record of a node is stored as."""
    return str(NODE_RECORDS[kind].MESSAGE.DESCRIPTOR.name)


def _feed(kind: Kind, row: KindRow) -> Iterator[str]:
    if kind.is_node and row.feed != "told":
        yield "users who may load a node read its changes"
    if (row.feed == "told") != (kind in _rules(Action.METADATA_LOAD)) and row.feed:
        yield "no rule of metadata_load says who reads its changes; see access/policy.py"
    if not kind.is_node and bool(row.feed) != (kind in TOUCHED):
        yield "nothing says which facts a change touches; register it in TOUCHED of view/facts.py"


def _transactions(_: Kind, row: KindRow) -> Iterator[str]:
    for word in sorted(set(row.transactions or ()) - OPERATIONS):
        yield f"no operation {word}; add it in http/admin/catalog/transactions.py"


def _locations(kind: Kind, row: KindRow) -> Iterator[str]:
    for place in row.locations or ():
        if (place in OF_CATALOGS) != (kind is Kind.CATALOG):
            yield f"OF_CATALOGS of model/storage_locations.py disagrees about {place.name}"
        others = [
            each.word for each, other in KIND_TABLE.items() if each is not kind and place in (other.locations or ())
        ]
        if others:
            yield f"{place.name} is a place of {', '.join(others)} too"


def _placeholder(kind: Kind, row: KindRow) -> Iterator[str]:
    if bool(row.placeholder) != (kind in placeholder_nodes._RECORDS):
        yield "_RECORDS of services/federation/placeholder_nodes.py disagrees"


def _lineage(kind: Kind, row: KindRow) -> Iterator[str]:
    if bool(row.lineage) != (kind in lineage.CHANGES):
        yield "CHANGES of rooms/pipelines/services/lineage.py disagrees"


def _cli(kind: Kind, row: KindRow) -> Iterator[str]:
    for part in sorted(set(row.cli or ()) - set(CLI_PARTS)):
        yield f"the command line has no part '{part}'"
    for part in CLI_PARTS:
        place, words = CLI_KINDS[part]
        if (part in (row.cli or ())) != (kind.word in words):
            yield f"the part '{part}' of the command line disagrees; see {place}"
    is_in_iceberg = not {ANY_CATALOG, ICEBERG_PROVIDER}.isdisjoint(row.catalogs or ())
    is_asked_for = kind in NAMESPACE_OBJECTS and "path" in (row.cli or ()) and is_in_iceberg
    found_by = Objects(None, ClientScope("lake"))  # type: ignore[type-var]  # no request is sent
    if is_asked_for and kind.word not in dict(found_by._candidates(("main", "a", "n"))):
        yield "a path without --kind is not found; add a request to _candidates in client/catalog/objects.py"


CHECKS: Final[dict[str, Callable[[Kind, KindRow], Iterator[str]]]] = {
    "gravitino": _gravitino,
    "gravitino_error": _gravitino_error,
    "sqlpp": _sqlpp,
    "name_space": _name_space,
    "catalogs": _catalogs,
    "verbs": _verbs,
    "privileges": _privileges,
    "owned": _owned,
    "attachable": _attachable,
    "attached_as": _attached_as,
    "protected": _protected,
    "restricted": _restricted,
    "trash": _trash,
    "export": _export,
    "feed": _feed,
    "transactions": _transactions,
    "locations": _locations,
    "placeholder": _placeholder,
    "lineage": _lineage,
    "cli": _cli,
}
"""Checks of each aspect of a row in the rooms."""


def problems(kind: Kind, row: KindRow, aspect: str) -> list[str]:
    """Return the problems of one aspect of a kind, each with both names."""
    value = getattr(row, aspect)
    if isinstance(value, Exclusion) and not value.reason:
        return [f"kind {kind.word}: {aspect}: the row says nothing; give a value, or no(reason)"]
    return [f"kind {kind.word}: {aspect}: {problem}" for problem in CHECKS[aspect](kind, row)]


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.word)
def test_every_kind_has_a_row_and_a_record(kind: Kind) -> None:
    """Every kind has a row in the table, and a record if it is a node."""
    assert kind in KIND_TABLE, f"kind {kind.word}: no row; add one to limnos/model/kind_table.py"
    assert kind.is_node == (kind in NODE_RECORDS), (
        f"kind {kind.word}: record: register one in NODE_RECORDS of model/records.py"
    )


@pytest.mark.parametrize("aspect", KindRow._fields)
@pytest.mark.parametrize("kind", KIND_TABLE, ids=lambda kind: kind.word)
def test_rooms_agree_with_row_of_kind(kind: Kind, aspect: str) -> None:
    """Each aspect of a kind equals its row, in every room that handles the kind."""
    complaints = problems(kind, KIND_TABLE[kind], aspect)

    assert complaints == [], "\n".join(complaints)


def test_every_operation_and_place_belongs_to_a_kind() -> None:
    """The table includes every operation of transactions and every use of a location."""
    operations = {word for row in KIND_TABLE.values() for word in row.transactions or ()}
    locations = {place for row in KIND_TABLE.values() for place in row.locations or ()}

    assert operations == OPERATIONS
    assert locations == set(LocationKind)


@pytest.mark.parametrize(
    "kind, aspect, value, message",
    [
        (Kind.VIEW, "export", no("not yet"), "kind view: export: an export has every row of `node`"),
        (Kind.VIEW, "export", "entity.nothing", "kind view: export: no field 'nothing' in Entity.rest"),
        (
            Kind.VIEW,
            "export",
            "entity.tag",
            "kind view: export: Entity.tag is a TagRecord, and the node's record is a ViewRecord",
        ),
        (Kind.VIEW, "trash", no("not yet"), "kind view: trash: what is dropped in a catalog lies in its trash"),
        (Kind.TAG, "trash", True, "kind tag: trash: no rule of undrop"),
        (Kind.VIEW, "gravitino", no("not yet"), "kind view: gravitino: grants, owners and tags name it by this type"),
        (Kind.VIEW, "name_space", "view", "kind view: name_space: names are looked up in 'table'"),
        (Kind.VIEW, "name_space", no("not yet"), "kind view: name_space: every kind has a name space"),
        (Kind.VIEW, "verbs", ("list", "share"), "kind view: verbs: the action view_alter exists"),
        (
            Kind.SYNONYM,
            "verbs",
            ("list", "see", "create", "load", "alter", "drop"),
            "kind synonym: verbs: no action synonym_alter",
        ),
        (Kind.VIEW, "privileges", ("read_view",), "kind view: privileges: no privilege READ_VIEW"),
        (Kind.VIEW, "owned", no("not yet"), "kind view: owned: owner_set disagrees"),
        (Kind.VIEW, "attachable", no("not yet"), "kind view: attachable: HOLDERS"),
        (Kind.ROLE, "attached_as", "roles", "kind role: attached_as: no action role_apply"),
        (Kind.VIEW, "protected", no("not yet"), "kind view: protected: the rule of protect disagrees"),
        (Kind.VIEW, "restricted", True, "kind view: restricted: access/restrictions.py disagrees"),
        (Kind.TOKEN, "feed", "told", "kind token: feed: no rule of metadata_load"),
        (Kind.JOB, "feed", no("not yet"), "kind job: feed: nothing says which facts a change touches"),
        (Kind.VIEW, "transactions", ("share-view",), "kind view: transactions: no operation share-view"),
        (Kind.VIEW, "locations", (LocationKind.TABLE,), "kind view: locations: TABLE is a place of table too"),
        (Kind.VIEW, "locations", (LocationKind.WAREHOUSE,), "kind view: locations: OF_CATALOGS"),
        (Kind.VIEW, "placeholder", no("not yet"), "kind view: placeholder: _RECORDS"),
        (Kind.VIEW, "lineage", no("not yet"), "kind view: lineage: CHANGES"),
        (Kind.VIEW, "cli", ("path",), "kind view: cli: the part 'owner' of the command line disagrees; see OwnedKind"),
        (
            Kind.SYNONYM,
            "cli",
            ("path",),
            "kind synonym: cli: a path without --kind is not found; add a request to _candidates",
        ),
        (
            Kind.FUNCTION,
            "cli",
            ("path",),
            "kind function: cli: a path without --kind is not found; add a request to _candidates",
        ),
        (Kind.VIEW, "sqlpp", "lens", "kind view: sqlpp: no errors for a missing and a taken lens"),
        (Kind.VIEW, "catalogs", ("fileset",), "kind view: catalogs: catalogs of provider fileset hold filesets"),
        (Kind.VIEW, "gravitino_error", "view", "kind view: gravitino_error: 'view' is no part of a Java class name"),
        (Kind.VIEW, "trash", no(""), "kind view: trash: the row says nothing"),
    ],
    ids=lambda value: value.word if isinstance(value, Kind) else None,
)
def test_wrong_row_is_reported(kind: Kind, aspect: str, value: object, message: str) -> None:
    """Every check reports a row that differs from the rooms."""
    row = KindRow(**{**KIND_TABLE[kind]._asdict(), aspect: value})

    assert any(each.startswith(message) for each in problems(kind, row, aspect)), problems(kind, row, aspect)


@pytest.mark.parametrize("declared", DECLARED, ids=lambda declared: declared.kind.word)
def test_words_of_a_declared_kind_belong_to_nothing_else(declared: DeclaredKind) -> None:
    """No command, route, operation or resource of the client has the word or the plural of a declared kind."""
    assert word_problems(declared) == []


@pytest.mark.parametrize(
    "kind,plural,problem",
    [
        (Kind.DASHBOARD, "reports", "'reports' is the command 'limnos reports'"),
        (Kind.DASHBOARD, "reports", "'limnos list report' is the command 'reports'"),
        (Kind.DASHBOARD, "reports", "the resource 'reports' of client/session.py is that of something else"),
        (Kind.DASHBOARD, "notebooks", "client/session.py has 0 resources 'notebooks', and not one"),
        (Kind.DASHBOARD, "trash", "'trash' is in the route GET /api/limnos/v1/metalakes/{m}/catalogs/{c}/trash"),
        (Kind.DASHBOARD, "schemas", "'schemas' is another word for a namespace on the command line"),
        (Kind.DASHBOARD, "close", "'close' is an attribute of every client"),
        (Kind.TABLE, "tables", "'table' is the command 'limnos table'"),
        (Kind.TAG, "tags", "'limnos list tag' is the command 'tag list'"),
        (Kind.TABLE, "dashboards", "'load-table' is the operation of GET"),
    ],
)
def test_used_word_of_a_declared_kind_is_reported(kind: Kind, plural: str, problem: str) -> None:
    """A word that something else has is reported with what has it."""
    declared = DECLARED[0]._replace(kind=kind, plural=plural)

    problems = word_problems(declared)

    assert any(each.startswith(f"kind {kind.word}: {problem}") for each in problems), problems
