"""Random stories of orphan removal lose no live file by the model, and the model finds each bug that is planted."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from limnos.files import FileKeys, place_key
from limnos.formats.maintenance import orphans
from limnos.services.maintenance.orphans import rounds, search
from tests.http.driver import DriverNode
from tests.http.iceberg.wire import make_space, node_over
from tests.services.maintenance.orphans.histories import no_wait
from tests.services.maintenance.orphans.story import OrphanStory

pytestmark = pytest.mark.heavy
STEPS: Final = int(os.environ.get("LIMNOS_TEST_ORPHANS", "250"))
"""Steps of the story on each store; `make test-orphans` does 10,000."""
SEED: Final = int(os.environ.get("LIMNOS_TEST_ORPHANS_SEED", "51"))
SEARCH: Final = 1_500
"""Steps in which a planted bug must be found."""


def tell(story: OrphanStory, steps: int) -> list[str]:
    """Do steps until something is lost. Returns what is."""
    for number in range(steps):
        act = story.step()
        try:
            lost = story.check()
        except FileNotFoundError as error:  # a manifest, or a list of them
            lost = [str(error)]
        if lost:
            return [f"step {number} ({act}): {each}" for each in lost]
    return []


def test_no_live_file_is_lost(lake: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever writers, kills and clocks do, every file that a reader may open is there, and orphans go."""
    no_wait(monkeypatch)
    story = OrphanStory(lake, seed=SEED)
    began = time.process_time()
    assert tell(story, STEPS) == []
    print(
        f"{STEPS} steps: {story.kills} kills, {story.deleted} orphans deleted of {story.orphans} left, {story.expired} expiries, "
        f"{story.refused} commits refused, {len(story.clones)} copies, {time.process_time() - began:.0f} s CPU"
    )
    assert story.kills > 0
    assert story.deleted > 0


def only_current(body: bytes) -> orphans.TableReferences:
    """Read the files of the current snapshot alone."""
    import json

    metadata = json.loads(body)
    current = metadata.get("current-snapshot-id")
    metadata["snapshots"] = [each for each in metadata.get("snapshots", []) if each["snapshot-id"] == current]
    return REAL_REFERENCES(json.dumps(metadata).encode())


def no_statistics(body: bytes) -> orphans.TableReferences:
    """Leave out statistics files."""
    import msgspec

    return msgspec.structs.replace(REAL_REFERENCES(body), files=())


def by_text(self: FileKeys, location: str) -> tuple[object, ...]:
    """Compare locations as text, so that links make a difference."""
    del self
    return (place_key(location),)


def no_target(self: FileKeys, location: str) -> None:
    """Follow no link."""
    del self, location


def not_strict(real: Callable[..., Any]) -> Callable[..., Any]:
    """Do not mind files that are named and not listed."""

    def change(*args: Any, **named: Any) -> Any:  # noqa: ANN401
        return real(*args, **named)._replace(missing=(), elsewhere=())

    return change


def by_deleted(data: bytes) -> list[str]:
    """Read only the first file of a manifest list's manifests: a reader that stops early."""
    return REAL_PATHS(data)[:1]


REAL_REFERENCES = orphans.references_of
REAL_PATHS = orphans.manifest_paths
LENIENT = (search, "search_orphans", not_strict(search.search_orphans))
BUGS: Final[dict[str, tuple[tuple[Any, str, Any], ...]]] = {
    "current snapshot alone": ((orphans, "references_of", only_current),),
    "statistics left out": ((orphans, "references_of", no_statistics),),
    "manifests left out": ((orphans, "manifest_paths", by_deleted),),
    "links compared by text": ((FileKeys, "of", by_text), (FileKeys, "target_of", no_target), LENIENT),
}


@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_are_found(bug: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the bug the model finds that a live file is lost."""
    no_wait(monkeypatch)
    for where, name, put in BUGS[bug]:
        monkeypatch.setattr(where, name, put)
    assert rounds.FENCE_WAIT_S == 0
    with node_over(tmp_path) as node:
        make_space(node, "a")
        lost = tell(OrphanStory(node, seed=1), SEARCH)
        print(f"{bug}: {lost[:1]}")
        assert lost
