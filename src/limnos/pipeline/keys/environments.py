# SPDX-License-Identifier: Apache-2.0
"""Keys of `environments`: the rule for the tables of each environment.

Must not know the steps, whose tables the rules map.
"""

from __future__ import annotations

from limnos.pipeline.compound_schemas import MapOf, Record, RecordKey
from limnos.pipeline.declaration import EnvironmentRule
from limnos.pipeline.keys.shared import WORD, pairs
from limnos.pipeline.node_schemas import NodeSite, Text, Values

ENVIRONMENT_NAME = Text(
    word="an environment's name",
    pattern=r"(?!prod$)[a-z][a-z0-9_]{0,31}",
    rule="write up to 32 small letters, digits and '_', beginning with a letter; prod is what the file declares",
)
PREFIX = Text(
    word="a prefix",
    pattern=r"[A-Za-z_][A-Za-z0-9_]{0,49}",
    rule="write up to 50 letters, digits and '_', beginning with a letter, like dev_",
)


def _environment(values: Values, site: NodeSite) -> EnvironmentRule:
    return EnvironmentRule(
        name="",
        catalog=values.get("catalog"),
        catalogs=dict(pairs(values.get("catalogs", ()))),
        prefix=values.get("prefix", ""),
        at=site.at,
    )


ENVIRONMENTS = MapOf(
    ENVIRONMENT_NAME,
    Record(
        name="an environment",
        some_of=("catalog", "catalogs", "prefix"),
        keys={
            "catalog": RecordKey(
                value_schema=WORD, description="The catalog of the environment's tables.", example="catalog: dev"
            ),
            "catalogs": RecordKey(
                value_schema=MapOf(WORD, WORD),
                description="The catalog by that of the declared table, for pipelines with several catalogs.",
                example="catalogs: {main: dev, vectors: dev_vectors}",
            ),
            "prefix": RecordKey(
                value_schema=PREFIX,
                description="Prefix of the first namespace of the environment's tables.",
                example="prefix: dev_",
            ),
        },
        build=_environment,
    ),
    most=100,
)
