"""The metadata log and its JSON, which must be what encoding the whole document gives."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.formats.iceberg.json_types import Json
from limnos.formats.iceberg.metadata_log import MetadataLog, metadata_log_of

FILES = st.text(max_size=8) | st.sampled_from(['},{"a":[', '\\"', "ä/é", "]"])
ENTRIES = st.builds(
    lambda time_ms, file: {"timestamp-ms": time_ms, "metadata-file": file}, st.integers(0, 2**53), FILES
)


@given(st.lists(ENTRIES, max_size=6), st.lists(st.tuples(ENTRIES, st.integers(1, 7)), max_size=12))
def test_encoded_log_equals_encoded_entries(before: list[Json], commits: list[tuple[Json, int]]) -> None:
    """After any chain of commits, with a length limit that changes, the log and the document's JSON are those of plain
    lists, and earlier logs are unchanged.
    """
    log, plain = metadata_log_of(before), list(before)
    for entry, length_max in commits:
        entries, earlier = list(log), log
        log, plain = log.followed_by(entry, length_max=length_max), [*plain, entry][-length_max:]
        document = {"location": "a", "metadata-log": log, "refs": {}}

        assert log == plain
        assert iceberg_metadata.encode(document) == msgspec.json.encode({**document, "metadata-log": plain})
        assert earlier == entries


def test_log_that_this_node_built_is_not_encoded_again() -> None:
    """The log of a decoded document is encoded once; its followers contain the same bytes."""
    entry: Json = {"timestamp-ms": 1, "metadata-file": "a"}
    log = metadata_log_of([entry])

    assert metadata_log_of(log) is log
    assert iceberg_metadata.rows({"metadata-log": log}, "metadata-log") is log
    assert MetadataLog([entry], encoded=b"[7]").followed_by(entry, length_max=2).encoded.startswith(b"[7,")
