# SPDX-License-Identifier: Apache-2.0
"""Lineage in the store, on both databases: edges of runs replace or add to earlier ones, with their columns, and
orphaned edges are swept.
"""

from __future__ import annotations

import pytest

from limnos.store.activity import lineage
from limnos.store.activity.lineage import (
    EVERY_FIELD,
    UNKNOWN_FIELD,
    ExternalDataset,
    LineageField,
    LineageJobRow,
    LineagePair,
    columns_read,
    edges_read,
    external_datasets_read,
    tables_at_read,
)
from limnos.store.activity.upkeep import orphans_sweep
from tests.backends import StoreLab
from tests.store.world import StoreWorld, add_namespace, add_table

FILE = ExternalDataset("s3://bucket", "dir/x")


def job(name: str = "j", *, parent: str = "p", at: int = 1) -> LineageJobRow:
    """Return a job in a run of its own."""
    return LineageJobRow(namespace="n", name=name, run=f"{parent}-{at}", parent=parent, at=at)


def put(
    lab: StoreLab,
    world: StoreWorld,
    target: int,
    job_row: LineageJobRow,
    *sources: int,
    pairs: tuple[LineagePair, ...] = (),
) -> int:
    """Record that a target is derived from sources."""
    return lab.write(lambda tx: tx.lineage.put(target, job_row, sources=sources, pairs=pairs), zone=world.main.id)


def ends(lab: StoreLab, *ids: int, up: bool = True) -> list[tuple[int, int, str]]:
    """Return source, target and job of the edges at some ids."""
    edges = lab.load(edges_read(ids, up=up, limit=100))
    return [(each.source_id, each.target_id, each.job.name) for each in edges]


def test_edges_are_replaced_by_newer_runs_of_the_job(lab: StoreLab, world: StoreWorld) -> None:
    """Edges of a newer parent run replace earlier ones, edges of the same run are added, and edges of an older run are
    ignored. Edges of other jobs are not changed. Edges are found by source and by target.
    """
    assert put(lab, world, 90, job(parent="one", at=1), 81, 82) == 2
    assert put(lab, world, 90, job("other", at=1), 83) == 1
    assert put(lab, world, 90, job(parent="two", at=5), 84) == 1
    assert put(lab, world, 90, job(parent="two", at=4), 85) == 1
    assert put(lab, world, 90, job(parent="one", at=3), 86) == 0

    assert ends(lab, 90) == [(83, 90, "other"), (84, 90, "j"), (85, 90, "j")]
    assert ends(lab, 84, 83, up=False) == [(83, 90, "other"), (84, 90, "j")]
    (first, *_) = lab.load(edges_read([84], up=False, limit=1))
    assert (first.said_by, first.job.at, first.job.run) == ("tester", 5, "two-5")
    assert len(lab.load(edges_read([90], up=True, limit=2))) == 2


def test_column_pairs_match_by_field_id_name_or_whole_target(lab: StoreLab, world: StoreWorld) -> None:
    """Column pairs are found by field id, by name if they have no id, and for every column if the whole target depends
    on the source.
    """
    amount, name, whole = LineageField(3, "amount"), LineageField(UNKNOWN_FIELD, "name"), LineageField(EVERY_FIELD, "")
    pairs = (
        LineagePair(source_id=81, target=amount, source=LineageField(1, "a"), subtype="AGGREGATION", direct=True),
        LineagePair(
            source_id=81, target=name, source=LineageField(UNKNOWN_FIELD, "n"), subtype="IDENTITY", direct=True
        ),
        LineagePair(source_id=81, target=whole, source=LineageField(2, "f"), subtype="FILTER", direct=False),
    )
    put(lab, world, 90, job(), 81, pairs=pairs)
    put(
        lab,
        world,
        90,
        job(at=2),
        81,
        pairs=(
            *pairs,
            LineagePair(source_id=81, target=amount, source=LineageField(9, "z"), subtype="IDENTITY", direct=True),
        ),
    )

    def sources(field: LineageField) -> list[tuple[int, str, bool]]:
        columns = lab.load(columns_read([(90, field)], up=True, limit=100))
        return [(each.pair.source.id, each.pair.subtype, each.pair.direct) for each in columns]

    assert sources(LineageField(3, "renamed")) == [
        (1, "AGGREGATION", True),
        (2, "FILTER", False),
        (9, "IDENTITY", True),
    ]
    assert sources(LineageField(7, "name")) == [(UNKNOWN_FIELD, "IDENTITY", True), (2, "FILTER", False)]
    assert sources(LineageField(7, "other")) == [(2, "FILTER", False)]
    down = lab.load(columns_read([(81, LineageField(2, "f")), (80, LineageField(1, "a"))], up=False, limit=100))
    assert [each.pair.target for each in down] == [whole]
    assert ends(lab, 90) == [(81, 90, "j")]
    assert lab.load(edges_read([90], up=True, limit=1))[0].kinds == ("AGGREGATION", "FILTER", "IDENTITY")
    put(lab, world, 90, job(parent="next", at=9), 81)
    assert sources(LineageField(3, "amount")) == []


def test_jobs_and_column_pairs_per_target_are_limited(
    lab: StoreLab, world: StoreWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a target's jobs only those with the latest runs are kept, and of one job's column pairs only the first
    ones.
    """
    monkeypatch.setattr(lineage, "JOBS_MAX", 3)
    monkeypatch.setattr(lineage, "COLUMNS_MAX", 2)
    for number in range(6):
        put(lab, world, 90, job(f"j{number}", at=number), 81)
    pairs = tuple(
        LineagePair(
            source_id=81, target=LineageField(number, "t"), source=LineageField(1, "s"), subtype="", direct=True
        )
        for number in range(1, 5)
    )
    put(lab, world, 91, job(), 81, pairs=pairs)

    assert [each[2] for each in ends(lab, 90)] == ["j5", "j4", "j3"]
    columns = lab.load(columns_read([(91, LineageField(number, "t")) for number in range(1, 5)], up=True, limit=100))
    assert [each.pair.target.id for each in columns] == [1, 2]


def test_sources_and_derived_datasets_are_limited(
    lab: StoreLab, world: StoreWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of sources of a target, and of external datasets derived from a source, is limited. Column pairs of
    removed edges are removed, too.
    """
    monkeypatch.setattr(lineage, "SOURCES_MAX", 3)
    monkeypatch.setattr(lineage, "EXPORTS_MAX", 2)
    for number in range(6):
        pair = LineagePair(
            source_id=80 + number, target=LineageField(1, "t"), source=LineageField(1, "s"), subtype="", direct=True
        )
        put(lab, world, 90, job(at=number), 80 + number, pairs=(pair,))
    files = [
        lab.write(lambda tx, n=number: tx.lineage.external_dataset_id(1, ExternalDataset("s3://b", str(n))))
        for number in range(4)
    ]
    for number, file in enumerate(files):
        put(lab, world, file, job(at=number), 70)
    put(lab, world, 91, job(at=0), 70)
    lab.write(lambda tx: tx.lineage.trim_exports(70), zone=world.main.id)

    assert [each[0] for each in ends(lab, 90)] == [83, 84, 85]
    assert len(lab.load(columns_read([(90, LineageField(1, "t"))], up=True, limit=100))) == 3
    assert {each[1] for each in ends(lab, 70, up=False)} == {91, *files[2:]}


def test_external_dataset_has_one_id_per_metalake(lab: StoreLab, world: StoreWorld) -> None:
    """A dataset outside has one id in a metalake, another one in the next."""
    first, again = (lab.write(lambda tx: tx.lineage.external_dataset_id(world.lake.id, FILE)) for _ in range(2))
    other = lab.write(lambda tx: tx.lineage.external_dataset_id(999, FILE))

    assert first == again != other
    assert lab.load(external_datasets_read([first, other, 1])) == {first: FILE, other: FILE}


def test_sweep_deletes_edges_of_purged_objects(lab: StoreLab, world: StoreWorld) -> None:
    """The sweep deletes edges of objects that were dropped for good, with their columns, and external datasets without
    edges. Edges of objects in the trash are kept.
    """
    space = lab.write(lambda tx: add_namespace(tx, world.main, "a"), zone=world.main.id)
    source, target, other = (
        lab.write(lambda tx, name=name: add_table(tx, space, name), zone=world.main.id) for name in ("s", "t", "o")
    )
    file = lab.write(lambda tx: tx.lineage.external_dataset_id(world.lake.id, FILE))
    pair = LineagePair(
        source_id=source.id, target=LineageField(1, "a"), source=LineageField(1, "a"), subtype="", direct=True
    )
    put(lab, world, target.id, job(), source.id, file, pairs=(pair,))
    put(lab, world, other.id, job(), source.id)
    lab.write(lambda tx: tx.nodes.drop(target, keep_ms=10**9), zone=world.main.id)
    early_count = lab.write(orphans_sweep, zone=world.main.id)
    lab.write(lambda tx: tx.trash.forget(target.id), zone=world.main.id)
    swept = lab.write(orphans_sweep, zone=world.main.id)

    assert (early_count, swept) == (0, 4)
    assert ends(lab, source.id, file, up=False) == [(source.id, other.id, "j")]
    assert lab.load(external_datasets_read([file])) == {}
    assert lab.load(tables_at_read(["file:///nowhere"])) == {}
