# SPDX-License-Identifier: Apache-2.0
"""The table of kinds: one row per kind of object, with everything that more than one package must know about the kind.

Packages derive their sets and dictionaries from the rows. Where an aspect needs a function, the package keeps a
dictionary by kind, and `tests/house/test_kinds.py` checks it against the row. A row has `no(reason)` for an aspect that
the kind lacks. That test fails for a kind without a row, an aspect or a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Final, Literal, NamedTuple

from limnos.model.declared_kinds import DECLARED_KINDS
from limnos.model.kinds import (
    FILESET_PROVIDER,
    GENERIC_PROVIDER,
    ICEBERG_PROVIDER,
    MESSAGING_PROVIDER,
    MODEL_PROVIDER,
    SHARED_SPACE,
    TABLE_FORMATS,
    Kind,
    ZoneKind,
)
from limnos.model.storage_locations import LocationKind


class Exclusion:
    """The value of an aspect that a kind lacks, with the reason. False in a boolean context."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __bool__(self) -> Literal[False]:
        return False


def no(reason: str) -> Exclusion:
    """Build the `Exclusion` of an aspect from a kind; `reason` explains why the kind does not have the aspect."""
    return Exclusion(reason)


UNSAID: Final = no("")
"""The default: the row does not define the aspect. The house test fails for it and names the kind."""
ANY_CATALOG: Final = "*"
"""In a row's `catalogs`: catalogs of every provider. In those of external systems and of a directory of Lance tables,
objects other than namespaces are refused (`refuse_create`).
"""

Words = tuple[str, ...]
Yes = Literal[True]


class KindRow(NamedTuple):
    """Everything that more than one package must know about one kind."""

    gravitino: str | Exclusion = UNSAID
    """Type of Gravitino's MetadataObject in URLs and bodies."""
    gravitino_error: str | Exclusion = UNSAID
    """Noun in the names of Gravitino's exceptions: `Schema` in `NoSuchSchemaException`."""
    sqlpp: str | Exclusion = UNSAID
    """Noun of SQL++ for the objects of one dataverse."""
    name_space: str | Exclusion = UNSAID
    """The name of the set of kinds whose objects under one parent need different names."""
    catalogs: Words | Exclusion = UNSAID
    """Providers of the catalogs that hold such objects in their namespaces; `ANY_CATALOG` for all."""
    verbs: Words | Exclusion = UNSAID
    """Actions that shared code composes as `<kind>_<verb>`, each with a rule in the policy: see `VERBS`."""
    privileges: Words | Exclusion = UNSAID
    """Privileges that can be granted on an object of the kind, in addition to those on its ancestors' kinds."""
    owned: Yes | Exclusion = UNSAID
    """Whether objects have an owner, which can be changed."""
    attachable: Yes | Exclusion = UNSAID
    """Whether tags and policies can be attached to objects."""
    attached_as: str | Exclusion = UNSAID
    """Plural of the attached objects: `tags`, `policies`."""
    protected: Yes | Exclusion = UNSAID
    """Whether objects can be protected from drops."""
    restricted: Yes | Exclusion = UNSAID
    """Whether read restrictions can be set on objects."""
    trash: Yes | Exclusion = UNSAID
    """Whether a dropped object is kept in the trash of its catalog and can be restored."""
    export: str | Exclusion = UNSAID
    """Field of the export's record; for an entity, with the field of its content: `entity.view`."""
    feed: Literal["told", "internal"] | Exclusion = UNSAID
    """The recipients of its changes: nodes and the users who may load the object (`told`), or only nodes (`internal`).
    """
    transactions: Words | Exclusion = UNSAID
    """The operations on the kind that a transaction may contain."""
    locations: tuple[LocationKind, ...] | Exclusion = UNSAID
    """The uses of its storage locations."""
    placeholder: Yes | Exclusion = UNSAID
    """Whether a node can be the placeholder of an external object of this kind."""
    lineage: Yes | Exclusion = UNSAID
    """Whether objects are datasets of lineage events."""
    cli: Words | Exclusion = UNSAID
    """Parts of the command line that support the kind: see `CLI_PARTS`."""


VERBS: Final = ("list", "see", "create", "load", "alter", "drop", "apply")
"""Verbs that shared code combines with a kind's word to name an action."""
CLI_PARTS: Final = ("path", "owner", "explain", "drop", "describe")
"""`path`: the flag `--kind` of commands that take a path, and the client's spelling of it; the others are commands."""

_CONTAINER_VERBS = ("list", "create", "load", "alter", "drop")
_LEAF_VERBS = ("list", "see", "create", "load", "alter", "drop")
_DECLARED_VERBS = ("list", "see", "create", "load", "drop")
_NO_GRAVITINO = no("Gravitino has no such objects")
_NO_TREE = no("it is not in a namespace")
_NO_FILES = no("it has no files of its own")
_NO_SQLPP = no("SQL++ has no statement for it")
_NOT_ATTACHED = no("only tags and policies are attached to other objects")
_NOT_IN_TRANSACTIONS = no("transactions change tables, views, namespaces and runs only")
_NOT_RESTRICTED = no("read restrictions are about rows and columns of tables")
_NOT_MIRRORED = no("connectors list schemas, tables, views and topics only")
_NO_DATASET = no("lineage events name tables and views")
_NO_PROTECTION = no("protection is for catalogs and the objects in them")
_NO_TRASH = no("the trash belongs to a catalog")
_NO_TAGS = no("tags and policies are for catalogs and the objects in them")
_ABOVE_ONLY = no("its privileges are granted on the metalake")
_NO_DATA_ABOVE = no("privileges on containers are listed with the objects that they are about")


def _container(kind: Kind) -> KindRow:
    """Build the row of a container of nodes. Each row of the table names its differences from such a row."""
    return KindRow(
        gravitino=kind.word,
        gravitino_error=_java_noun(kind),
        sqlpp=_NO_SQLPP,
        name_space=kind.word,
        catalogs=_NO_TREE,
        verbs=_CONTAINER_VERBS,
        privileges=_NO_DATA_ABOVE,
        owned=True,
        attachable=True,
        attached_as=_NOT_ATTACHED,
        protected=True,
        restricted=_NOT_RESTRICTED,
        trash=_NO_TRASH,
        export=kind.word,
        feed="told",
        transactions=_NOT_IN_TRANSACTIONS,
        locations=_NO_FILES,
        placeholder=_NOT_MIRRORED,
        lineage=_NO_DATASET,
        cli=CLI_PARTS,
    )


def _namespace_object(kind: Kind) -> KindRow:
    """Build the row of an object in the namespaces of Iceberg catalogs."""
    return KindRow(
        gravitino=kind.word,
        gravitino_error=_java_noun(kind),
        sqlpp=_NO_SQLPP,
        name_space=kind.word,
        catalogs=(ICEBERG_PROVIDER,),
        verbs=_LEAF_VERBS,
        privileges=no("rights on the namespace decide"),
        owned=True,
        attachable=True,
        attached_as=_NOT_ATTACHED,
        protected=True,
        restricted=_NOT_RESTRICTED,
        trash=True,
        export=f"entity.{kind.word}",
        feed="told",
        transactions=_NOT_IN_TRANSACTIONS,
        locations=_NO_FILES,
        placeholder=_NOT_MIRRORED,
        lineage=_NO_DATASET,
        cli=CLI_PARTS,
    )


def _statement_object(kind: Kind) -> KindRow:
    """Build the row of an object that only statements of SQL++ manage."""
    return _namespace_object(kind)._replace(
        gravitino_error=_NO_GRAVITINO,
        sqlpp=kind.word,
        verbs=_DECLARED_VERBS,
        export="entity.declared",
        cli=no("SQL++ statements manage it"),
    )


def _metalake_object(kind: Kind) -> KindRow:
    """Build the row of an object that belongs to a metalake and is in no catalog."""
    return KindRow(
        gravitino=kind.word,
        gravitino_error=_java_noun(kind),
        sqlpp=_NO_SQLPP,
        name_space=kind.word,
        catalogs=_NO_TREE,
        verbs=("list", "create", "load", "alter", "drop", "apply"),
        privileges=_ABOVE_ONLY,
        owned=True,
        attachable=_NO_TAGS,
        attached_as=_NOT_ATTACHED,
        protected=_NO_PROTECTION,
        restricted=_NOT_RESTRICTED,
        trash=_NO_TRASH,
        export=f"entity.{kind.word}",
        feed="told",
        transactions=_NOT_IN_TRANSACTIONS,
        locations=_NO_FILES,
        placeholder=_NOT_MIRRORED,
        lineage=_NO_DATASET,
        cli=("path", "owner", "explain"),
    )


def _principal(kind: Kind) -> KindRow:
    """Build the row of a user or group."""
    return _metalake_object(kind)._replace(
        gravitino=no("a principal is not a MetadataObject"),
        verbs=("list", "load"),
        owned=no("principals own objects and have no owners"),
        export="principal",
        cli=("explain",),
    )


def _java_noun(kind: Kind) -> str:
    return kind.word.title().replace("_", "")


KIND_TABLE: Final[Mapping[Kind, KindRow]] = {
    Kind.METALAKE: _container(Kind.METALAKE)._replace(
        verbs=("create", "load", "alter", "drop"), attachable=_NO_TAGS, protected=_NO_PROTECTION
    ),
    Kind.CATALOG: _container(Kind.CATALOG)._replace(
        trash=no("a catalog must be empty or is dropped with its content"),
        locations=(
            LocationKind.LANCE_DIRECTORY,
            LocationKind.WAREHOUSE,
            LocationKind.ALLOWED_LOCATION,
            LocationKind.RESTRICTED_READS,
        ),
    ),
    Kind.NAMESPACE: _container(Kind.NAMESPACE)._replace(
        gravitino="schema",
        gravitino_error="Schema",
        sqlpp=no("a dataverse is not an object of a dataverse"),
        catalogs=(ANY_CATALOG,),
        verbs=_LEAF_VERBS,
        restricted=True,
        trash=True,
        transactions=("create-namespace", "drop-namespace", "move-namespace"),
        placeholder=True,
    ),
    Kind.TABLE: _namespace_object(Kind.TABLE)._replace(
        sqlpp="dataset",
        catalogs=(ICEBERG_PROVIDER, GENERIC_PROVIDER),
        privileges=("select_table", "modify_table"),
        restricted=True,
        export="table",
        transactions=(
            "create-table",
            "commit-table",
            "drop-table",
            "move-table",
            "register-table",
            "commit-lance-version",
        ),
        locations=(LocationKind.TABLE, LocationKind.DATA_PATH, LocationKind.LANCE_TABLE, LocationKind.STAGED_TABLE),
        placeholder=True,
        lineage=True,
    ),
    Kind.VIEW: _namespace_object(Kind.VIEW)._replace(
        sqlpp="view",
        name_space="table",
        privileges=("select_view",),
        transactions=("create-view", "commit-view", "drop-view", "move-view"),
        locations=(LocationKind.VIEW,),
        placeholder=True,
        lineage=True,
    ),
    Kind.FILESET: _namespace_object(Kind.FILESET)._replace(
        catalogs=(FILESET_PROVIDER,),
        privileges=("read_fileset", "write_fileset"),
        locations=(LocationKind.FILESET, LocationKind.EXTERNAL_FILESET),
        cli=("path", "drop", "describe", "explain"),
    ),
    Kind.TOPIC: _namespace_object(Kind.TOPIC)._replace(
        catalogs=(MESSAGING_PROVIDER,),
        privileges=("consume_topic", "produce_topic"),
        placeholder=True,
        cli=("path", "describe", "explain"),
    ),
    Kind.MODEL: _namespace_object(Kind.MODEL)._replace(
        catalogs=(MODEL_PROVIDER,),
        privileges=("use_model", "link_model_version"),
        locations=no("a version names URIs that the server does not open"),
        cli=("path", "drop", "describe", "explain"),
    ),
    Kind.FUNCTION: _namespace_object(Kind.FUNCTION)._replace(
        sqlpp="function",
        catalogs=(ANY_CATALOG,),
        privileges=("execute_function", "modify_function"),
        export="entity.declared",
        cli=("explain",),
    ),
    Kind.COLUMN: KindRow(
        gravitino="column",
        gravitino_error=no("a missing column is a missing MetadataObject"),
        sqlpp=no("a column is part of a dataset"),
        name_space="column",
        catalogs=no("a column is in a table"),
        verbs=no("privileges on a column are those on its table"),
        privileges=no("privileges are granted on the table"),
        owned=no("the table's owner owns its columns"),
        attachable=True,
        attached_as=_NOT_ATTACHED,
        protected=no("the table is protected"),
        restricted=no("restrictions of the table name columns"),
        trash=no("it has no row of its own"),
        export=no("columns are part of the table's record"),
        feed=no("a change of a column is a commit of its table"),
        transactions=no("a commit of the table changes its columns"),
        locations=_NO_FILES,
        placeholder=no("the table's node represents it"),
        lineage=no("lineage of columns is a facet of the table's"),
        cli=no("`describe` shows columns with their table"),
    ),
    Kind.TAG: _metalake_object(Kind.TAG)._replace(privileges=("apply_tag",), attached_as="tags"),
    Kind.POLICY: _metalake_object(Kind.POLICY)._replace(
        privileges=("apply_policy",),
        attached_as="policies",
        cli=("explain",),
    ),
    Kind.JOB_TEMPLATE: _metalake_object(Kind.JOB_TEMPLATE)._replace(
        verbs=_CONTAINER_VERBS, privileges=("use_job_template",)
    ),
    Kind.JOB: _metalake_object(Kind.JOB)._replace(
        verbs=("list", "load"),
        export=no("runs are records of one store and expire"),
        transactions=("publish-run",),
        cli=no("commands of runs and jobs take ids, not kinds"),
    ),
    Kind.DATATYPE: _statement_object(Kind.DATATYPE)._replace(sqlpp="type"),
    Kind.SYNONYM: _statement_object(Kind.SYNONYM),
    Kind.EXTERNAL_DATASET: _statement_object(Kind.EXTERNAL_DATASET)._replace(
        sqlpp="dataset",
        name_space="table",
        privileges=no("SELECT_TABLE is granted on the namespace"),
        locations=no("no object of the server owns its files"),
    ),
    **{
        kind: _namespace_object(kind)._replace(
            gravitino_error=_NO_GRAVITINO, catalogs=(ANY_CATALOG,), export="entity.object"
        )
        for kind in DECLARED_KINDS
    },
    Kind.USER: _principal(Kind.USER),
    Kind.GROUP: _principal(Kind.GROUP),
    Kind.ROLE: _metalake_object(Kind.ROLE)._replace(
        verbs=("list", "create", "load", "drop"), export="role", cli=("owner", "explain")
    ),
    Kind.TOKEN: KindRow(
        gravitino=no("a credential is not a MetadataObject"),
        gravitino_error=no("Gravitino's API has no tokens"),
        sqlpp=_NO_SQLPP,
        name_space="token",
        catalogs=_NO_TREE,
        verbs=no("a token belongs to its user, and others need TOKEN_MANAGE_OTHERS"),
        privileges=no("service admins manage tokens of others"),
        owned=no("a token belongs to its user"),
        attachable=_NO_TAGS,
        attached_as=_NOT_ATTACHED,
        protected=_NO_PROTECTION,
        restricted=_NOT_RESTRICTED,
        trash=_NO_TRASH,
        export=no("credentials stay in the store that issued them"),
        feed="internal",
        transactions=_NOT_IN_TRANSACTIONS,
        locations=_NO_FILES,
        placeholder=_NOT_MIRRORED,
        lineage=_NO_DATASET,
        cli=no("commands of tokens take ids, not kinds"),
    ),
}
"""The row of each kind."""


def kinds_with(has: Callable[[KindRow], object]) -> tuple[Kind, ...]:
    """Return the kinds whose row satisfies `has`, in the order of their stored codes: `kinds_with(lambda row:
    row.trash)`.
    """
    return tuple(kind for kind in Kind if kind in KIND_TABLE and has(KIND_TABLE[kind]))


@cache
def may_contain(kind: Kind, provider: str) -> bool:
    """Return whether catalogs of a provider, such as `hive`, can contain objects of a kind in their namespaces."""
    catalogs = row_of(kind).catalogs or ()
    return ANY_CATALOG in catalogs or provider in catalogs


def row_of(kind: Kind) -> KindRow:
    """Return the row of a kind. Raises LookupError if there is none."""
    row = KIND_TABLE.get(kind)
    if row is None:
        raise LookupError(f"kind {kind.word} has no row in limnos/model/kind_table.py")
    return row


ONLY_KINDS: Final[Mapping[str, Kind]] = {
    provider: kind
    for kind in kinds_with(lambda row: row.catalogs)
    for provider in KIND_TABLE[kind].catalogs or ()
    if provider != ANY_CATALOG and provider not in TABLE_FORMATS
}
"""The only kind of object, apart from functions, in catalogs of a provider without tables. Their schemas do not nest.
"""


@cache
def name_space_of(kind: Kind, provider: str = "") -> str:
    """Return the key of the name space of a kind: objects in one name space under a parent need different names.

    It is that of the kind's row, except in a `lakehouse-generic` (Lance) catalog. That has one name space for all
    kinds, since Lance allows no two objects of one name in a namespace.
    """
    if provider == GENERIC_PROVIDER and kind.home is ZoneKind.CATALOG:
        return SHARED_SPACE
    return row_of(kind).name_space or kind.word


NAME_SPACES: Final = tuple(sorted({name_space_of(kind) for kind in KIND_TABLE} | {SHARED_SPACE}))
"""The keys of all name spaces."""
