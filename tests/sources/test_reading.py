"""A Lance table as its own files tell it, and what is not read though its files lead there."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from limnos.model.errors import InvalidTable
from limnos.sources.lance.questions import Describe
from limnos.sources.lance.reading import describe


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Somebody else's table, out of every root."""
    place = tmp_path / "elsewhere"
    lance.write_dataset(pa.table({"theirs": [1]}), str(place))
    return place


@pytest.mark.parametrize("whole", [True, False])
def test_a_link_that_leads_out_is_not_followed(tmp_path: Path, elsewhere: Path, whole: bool) -> None:
    """A table whose manifests are links to another's is refused, whether all of the directory is one or each file."""
    own = tmp_path / "own"
    own.mkdir()
    if whole:
        (own / "_versions").symlink_to(elsewhere / "_versions")
    else:
        (own / "_versions").mkdir()
        for manifest in (elsewhere / "_versions").iterdir():
            (own / "_versions" / manifest.name).symlink_to(manifest)

    with pytest.raises(InvalidTable, match="leads out of it"):
        describe(Describe(f"file://{own}", {}))


def test_links_within_a_table_are_followed(tmp_path: Path, elsewhere: Path) -> None:
    """The way to a table may be a link, and so may be what stays in it."""
    (manifest,) = (elsewhere / "_versions").glob("*.manifest")
    manifest.rename(elsewhere / "kept")
    manifest.symlink_to(elsewhere / "kept")
    (tmp_path / "way").symlink_to(elsewhere)

    found = describe(Describe(f"file://{tmp_path}/way", {}))

    assert found is not None
    assert found.version == 1
