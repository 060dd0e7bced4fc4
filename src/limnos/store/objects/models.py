# SPDX-License-Identifier: Apache-2.0
"""Versions of models and their aliases: rows by the model's node id. The node's record has the next version number.

Must not know rights: no decision depends on a row. Rows are retained while their model is in the trash.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from limnos.model.model_versions import ModelVersion, ModelVersionReference
from limnos.store.objects.trash import KEPT
from limnos.store.sql import Load, Row, Sql, Value
from limnos.store.transaction import Writes

_COLUMNS = "version, comment, properties, uris, created_by, created_at, modified_by, modified_at"
ALL = Sql(f"SELECT {_COLUMNS} FROM model_version WHERE model_id = :id ORDER BY version")
ONE = Sql(f"SELECT {_COLUMNS} FROM model_version WHERE model_id = :id AND version = :version")
NUMBERS = Sql("SELECT version FROM model_version WHERE model_id = :id ORDER BY version")
ALIASES = Sql("SELECT version, alias FROM model_alias WHERE model_id = :id ORDER BY alias")
ALIASES_OF = Sql("SELECT version, alias FROM model_alias WHERE model_id = :id AND version = :version ORDER BY alias")
ALIASED = Sql("SELECT version FROM model_alias WHERE model_id = :id AND alias = :alias")
INSERT = Sql(
    "INSERT INTO model_version (model_id, version, comment, properties, uris, created_by, created_at) VALUES"
    " (:id, :version, :comment, :properties, :uris, :actor, :now)"
)
UPDATE = Sql(
    "UPDATE model_version SET comment = :comment, properties = :properties, uris = :uris, modified_by = :actor,"
    " modified_at = :now WHERE model_id = :id AND version = :version"
)
DELETE = Sql("DELETE FROM model_version WHERE model_id = :id AND version = :version")
NAME = Sql("INSERT INTO model_alias (model_id, alias, version) VALUES (:id, :alias, :version) ON CONFLICT DO NOTHING")
UNNAME = Sql("DELETE FROM model_alias WHERE model_id = :id AND alias = :alias AND version = :version")
UNNAME_ALL = Sql("DELETE FROM model_alias WHERE model_id = :id AND version = :version")
_GONE = (
    "DELETE FROM {0} WHERE NOT EXISTS (SELECT 1 FROM node n WHERE n.id = {0}.model_id AND n.deleted = 0)"
    f" AND NOT {KEPT.format('{0}.model_id')}"
)
SWEEPS = tuple(Sql(_GONE.format(table)) for table in ("model_version", "model_alias"))


def _version_of(row: Row, aliases: Iterable[str]) -> ModelVersion:
    return ModelVersion(
        version=row[0],
        comment=row[1],
        properties=msgspec.json.decode(row[2], type=dict[str, str]),
        uris=msgspec.json.decode(row[3], type=dict[str, str]),
        aliases=tuple(aliases),
        created_by=row[4],
        created_at=row[5],
        modified_by=row[6],
        modified_at=row[7],
    )


def model_versions_read(model_id: int) -> Load[list[ModelVersion]]:
    """Read all versions of a model, by number."""
    rows = yield ALL, {"id": model_id}
    names = yield ALIASES, {"id": model_id}
    aliases: dict[int, list[str]] = {}
    for version, alias in names:
        aliases.setdefault(version, []).append(alias)
    return [_version_of(row, aliases.get(row[0], ())) for row in rows]


def model_numbers_read(model_id: int) -> Load[list[int]]:
    """Read the numbers of a model's versions."""
    rows = yield NUMBERS, {"id": model_id}
    return [row[0] for row in rows]


def model_version_read(model_id: int, which: ModelVersionReference) -> Load[ModelVersion | None]:
    """Read one version of a model by its number or an alias; None if it does not exist."""
    number = which.number
    if which.is_alias:
        results = yield ALIASED, {"id": model_id, "alias": which.text}
        number = results[0][0] if results else None
    if number is None:
        return None
    rows = yield ONE, {"id": model_id, "version": number}
    names = yield ALIASES_OF, {"id": model_id, "version": number}
    return _version_of(rows[0], [row[1] for row in names]) if rows else None


class ModelWrites(Writes):
    """Reads and writes versions of models inside a transaction."""

    def read(self, model_id: int, which: ModelVersionReference) -> ModelVersion | None:
        """Read one version inside the transaction by its number or an alias; None if it does not exist."""
        number = which.number
        if which.is_alias:
            rows = self.tx.rows(ALIASED, {"id": model_id, "alias": which.text})
            number = rows[0][0] if rows else None
        return None if number is None else self.at(model_id, number)

    def at(self, model_id: int, number: int) -> ModelVersion | None:
        """Read the version with a number inside the transaction, or None."""
        rows = self.tx.rows(ONE, {"id": model_id, "version": number})
        names = self.tx.rows(ALIASES_OF, {"id": model_id, "version": number})
        return _version_of(rows[0], [row[1] for row in names]) if rows else None

    def insert(self, model_id: int, version: ModelVersion) -> str | None:
        """Insert a version with its aliases.

        Returns the first alias that already belongs to another version, or None.
        """
        self.tx.count(INSERT, self._params(model_id, version))
        return self.name(model_id, version.version, aliases=version.aliases)

    def update(self, model_id: int, version: ModelVersion) -> None:
        """Update a version's comment, properties and URIs. Its aliases are written separately."""
        self.tx.count(UPDATE, self._params(model_id, version))

    def delete(self, model_id: int, version: int) -> None:
        """Delete a version and its aliases."""
        self.tx.count(UNNAME_ALL, {"id": model_id, "version": version})
        self.tx.count(DELETE, {"id": model_id, "version": version})

    def name(self, model_id: int, version: int, *, aliases: Iterable[str]) -> str | None:
        """Assign aliases to a version. Returns the first alias that already belongs to another version, or None."""
        for alias in aliases:
            if self.tx.count(NAME, {"id": model_id, "alias": alias, "version": version}):
                continue
            if self.tx.rows(ALIASED, {"id": model_id, "alias": alias})[0][0] != version:
                return alias
        return None

    def unname(self, model_id: int, version: int, *, aliases: Iterable[str]) -> None:
        """Remove aliases from a version. Aliases that belong to other versions are not removed."""
        for alias in aliases:
            self.tx.count(UNNAME, {"id": model_id, "alias": alias, "version": version})

    def _params(self, model_id: int, version: ModelVersion) -> dict[str, Value]:
        return {
            "id": model_id,
            "version": version.version,
            "comment": version.comment,
            "properties": msgspec.json.encode(version.properties).decode(),
            "uris": msgspec.json.encode(version.uris).decode(),
            "actor": self.tx.actor,
            "now": self.tx.now_ms,
        }
