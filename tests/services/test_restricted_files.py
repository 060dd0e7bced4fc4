"""What was shown of restricted tables goes when it is two periods old, and nothing else does."""

from __future__ import annotations

from pathlib import Path

from limnos.services.places import SET_ASIDE
from limnos.services.restricted_files import prune


def test_what_is_two_periods_old_goes(tmp_path: Path) -> None:
    """Files of this period and the one before stay; so does what lies beside them, whatever it is."""
    files = [tmp_path / SET_ASIDE / period / "7" / "digest" / "f.parquet" for period in ("8", "9", "10", "11", "notes")]
    files.append(tmp_path / "table" / "data" / "f.parquet")
    for file in files:
        file.parent.mkdir(parents=True)
        file.write_bytes(b"x")
    counted: list[int] = []
    gone = prune(f"file://{tmp_path}", counted.append, properties={}, oldest=10)

    assert gone == 2
    assert counted == [0, 1]
    assert [file.exists() for file in files] == [False, False, True, True, True, True]
    assert prune(f"file://{tmp_path}/nothing-here", counted.append, properties={}, oldest=10) == 0
