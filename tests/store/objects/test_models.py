# SPDX-License-Identifier: Apache-2.0
"""Versions of models in the store: found by number and alias, an alias on one version only, swept with a dropped
model.
"""

from __future__ import annotations

from limnos.model.model_versions import ModelVersion, ModelVersionReference
from limnos.store.activity.upkeep import orphans_sweep
from limnos.store.objects.models import model_numbers_read, model_version_read, model_versions_read
from tests.backends import StoreLab
from tests.store.world import StoreWorld, add_namespace


def version(number: int, *aliases: str) -> ModelVersion:
    """Return a version with one URI."""
    return ModelVersion(
        version=number, comment=None, properties={"k": "v"}, uris={"unknown": f"s3://x/{number}"}, aliases=aliases
    )


def test_versions_are_listed_and_aliases_move_to_new_versions(lab: StoreLab, world: StoreWorld) -> None:
    """Versions are listed by number with their aliases. A new version with an alias of another version takes the alias
    over, and the insert returns it.
    """
    model = lab.write(lambda tx: add_namespace(tx, world.main, "m"), zone=world.main.id)
    moved_aliases = [
        lab.write(lambda tx, it=it: tx.models.insert(model.id, it), zone=world.main.id)
        for it in (version(0, "new", "old"), version(1, "new"), version(2, "best"))
    ]
    listed = lab.load(model_versions_read(model.id))
    by_alias = lab.load(model_version_read(model.id, ModelVersionReference("best", is_alias=True)))
    lab.write(lambda tx: tx.models.unname(model.id, 1, aliases=["new", "old"]), zone=world.main.id)
    old_version = lab.load(model_version_read(model.id, ModelVersionReference("old", is_alias=True)))
    lab.write(lambda tx: tx.models.delete(model.id, 0), zone=world.main.id)

    assert moved_aliases == [None, "new", None]
    assert [(each.version, each.aliases) for each in listed] == [(0, ("new", "old")), (1, ()), (2, ("best",))]
    assert by_alias is not None
    assert (by_alias.version, by_alias.uris) == (2, {"unknown": "s3://x/2"})
    assert old_version is not None
    assert lab.load(model_numbers_read(model.id)) == [1, 2]
    assert lab.load(model_version_read(model.id, ModelVersionReference("old", is_alias=True))) is None
    assert lab.load(model_version_read(model.id, ModelVersionReference("nine", is_alias=False))) is None


def test_sweep_deletes_versions_and_aliases_of_a_dropped_model(lab: StoreLab, world: StoreWorld) -> None:
    """The sweep deletes the versions and aliases of a dropped model."""
    model = lab.write(lambda tx: add_namespace(tx, world.main, "m"), zone=world.main.id)
    lab.write(lambda tx: tx.models.insert(model.id, version(0, "new")), zone=world.main.id)
    lab.write(lambda tx: tx.nodes.drop(model), zone=world.main.id)

    assert lab.write(orphans_sweep, zone=world.lake.id) == 2
    assert lab.load(model_numbers_read(model.id)) == []
