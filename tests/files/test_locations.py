# SPDX-License-Identifier: Apache-2.0
"""Storage locations: one normal form per location, and no spelling that leaves a root."""

from __future__ import annotations

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.io.pyarrow import PyArrowFileIO

from limnos.files import allowed_roots, check_within, is_within, normalise, place_key
from limnos.model.errors import BadRequest, OutsideRoots

PIECE = st.sampled_from(["a", "bc", "a b", "é", "%20", "%2e", "%2e%2E", "x%2f..", ".", "..", "", "...", "a.b"])
PATHS = st.lists(PIECE, max_size=5).map(lambda pieces: "/" + "/".join(pieces))
SAFE_PIECE = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/%?#"), min_size=1).filter(
    lambda piece: piece not in (".", "..")
)
SAFE_PATHS = st.lists(SAFE_PIECE, min_size=1, max_size=5).map("/".join)
PREFIXES = st.sampled_from(
    ["/", "file:/", "file:///", "s3://bucket/", "gs://b/", "abfs://c@account.dfs.core.windows.net/"]
)


@pytest.mark.parametrize(
    "location, expected",
    [
        ("/a/b", "file:///a/b"),
        ("file:/a/b", "file:///a/b"),
        ("file:///a/b", "file:///a/b"),
        ("FILE:/a/b/", "file:///a/b"),
        ("/a//b///c/", "file:///a/b/c"),
        ("/", "file:///"),
        ("file:/", "file:///"),
        ("file:///", "file:///"),
        ("file:/a b/c%20d/é?x#y", "file:///a b/c%20d/é?x#y"),
        ("s3://b/k", "s3://b/k"),
        ("s3a://b/k/", "s3://b/k"),
        ("S3N://b/k", "s3://b/k"),
        ("s3://b", "s3://b"),
        ("s3://b/", "s3://b"),
        ("s3://b/a//c", "s3://b/a//c"),
        ("s3://b/a b/c%20d", "s3://b/a b/c%20d"),
        ("gcs://b/k", "gs://b/k"),
        ("abfss://c@acc.dfs.core.windows.net/k", "abfs://c@acc.dfs.core.windows.net/k"),
        ("oss://b/k", "oss://b/k"),
    ],
)
def test_every_spelling_of_a_place_has_one_normal_form(location: str, expected: str) -> None:
    """Schemes, slashes and synonyms have one normal form. The rest of the location is raw text."""
    assert normalise(location) == expected


@pytest.mark.parametrize(
    "location, reason",
    [
        ("", "not absolute"),
        ("a/b", "not absolute"),
        ("file:a/b", "not absolute"),
        ("file:", "not absolute"),
        ("file://", "not absolute"),
        ("file://host/a", "names a host"),
        ("//host/a", "names a host"),
        ("http://h/a", "scheme is unknown; use one of file, s3"),
        ("local:///a", "scheme is unknown"),
        ("simplecache::s3://b/k", "scheme is unknown"),
        ("/a/../b", r"'\.\.' segment"),
        ("/a/./b", "segment"),
        ("/a/%2e%2E/b", "segment"),
        ("/a/x%2f..%2fb", "segment"),
        ("s3://b/a/../c", "segment"),
        ("s3://../k", "segment"),
        ("s3:/b/k", "names no bucket; write s3://bucket/path"),
        ("s3:///k", "names no bucket"),
        ("s3a://", "names no bucket"),
        ("s3://b/k?versionId=1", "query or fragment"),
        ("s3://b/k#x", "query or fragment"),
        ("/a\x00b", "control character"),
        ("s3://b/.\n./k", "control character"),
        ("/a\ud800", "surrogate"),
    ],
)
def test_an_ambiguous_or_relative_location_is_refused(location: str, reason: str) -> None:
    """An ambiguous or relative location is refused, and the message says what is wrong with it."""
    with pytest.raises(BadRequest, match=reason):
        normalise(location)


@given(PREFIXES, SAFE_PATHS)
def test_normalization_is_idempotent(prefix: str, path: str) -> None:
    """Normalizing a normal form does not change it."""
    once = normalise(prefix + path)

    assert normalise(once) == once


@given(SAFE_PATHS.filter(lambda path: ";" not in path))
def test_pyiceberg_opens_exactly_the_normalized_path(path: str) -> None:
    """PyIceberg opens exactly the path that the normal form names, including percent signs, spaces and Unicode."""
    location = normalise(f"file:/x{path}%41")

    assert PyArrowFileIO.parse_location(location) == ("file", "", location.removeprefix("file://"))


@pytest.mark.parametrize(
    "location, root, expected",
    [
        ("file:/tmp/x", "file:///tmp", True),
        ("/tmp/x", "file:/tmp/", True),
        ("file:///tmp", "/tmp", True),
        ("/a/bc", "/a/b", False),
        ("/a/b/c", "/a/b", True),
        ("/a", "/a/b", False),
        ("/a/b/../../etc", "/a/b", False),
        ("/a/b/%2e%2e/c", "/a/b", False),
        ("/anything", "/", True),
        ("s3a://b/w/t", "s3://b/w", True),
        ("s3://b/w2/t", "s3://b/w", False),
        ("s3://other/w/t", "s3://b/w", False),
        ("s3://b/w", "s3://b", True),
        ("s3://bb/w", "s3://b", False),
        ("/b/w", "s3://b", False),
        ("gs://b/w", "s3://b/w", False),
        ("s3://b//w/t", "s3://b/w", False),
        ("s3://b/W/t", "s3://b/w", False),
        ("not a location", "/", False),
    ],
)
def test_within_compares_whole_segments(location: str, root: str, expected: bool) -> None:
    """A location is within a root if its store is the same and its first segments are those of the root."""
    assert is_within(location, [root]) is expected


def test_location_within_any_of_several_roots_is_allowed() -> None:
    """A location within any of several roots is allowed. Without roots, no location is allowed."""
    assert is_within("s3://b/x", ["/a", "s3://b"])
    assert not is_within("/a", [])


@given(PREFIXES, SAFE_PATHS, SAFE_PATHS, SAFE_PIECE)
def test_location_below_root_is_within_and_neighbor_is_not(prefix: str, root: str, below: str, more: str) -> None:
    """A location with appended segments is within the root. A location that extends the root's last segment is not."""
    assert is_within(f"{prefix}{root}/{below}", [prefix + root])
    assert not is_within(f"{prefix}{root}{more}/{below}", [prefix + root])


@given(PATHS, PATHS.filter(lambda path: not {".", ".."} & set(path.split("/")) and "%2" not in path.replace("%20", "")))
def test_no_spelling_escapes_root(path: str, root: str) -> None:
    """A location within a root is below it also after the operating system has interpreted dots and slashes."""
    within = is_within("file:" + "/" + path.lstrip("/"), ["/" + root.lstrip("/")])
    resolved = posixpath.normpath("/" + path.lstrip("/")).rstrip("/") + "/"
    below = resolved.startswith(posixpath.normpath("/" + root.lstrip("/")).rstrip("/") + "/")

    assert below or not within


def test_allowed_roots_are_the_warehouse_and_the_listed_prefixes() -> None:
    """The list of allowed prefixes is split at commas, blank and repeated entries are dropped, and each root is in
    normal form.
    """
    roots = allowed_roots("file:/srv/w/", " s3a://b/x , ,/srv/w,file:///tmp")

    assert roots == ("file:///srv/w", "s3://b/x", "file:///tmp")


def test_without_a_list_the_warehouse_is_the_only_root() -> None:
    """Without the property, or with an empty one, the warehouse is the only root."""
    assert allowed_roots("s3://b", None) == ("s3://b",)
    assert allowed_roots("s3://b", "") == ("s3://b",)


def test_an_illegal_root_is_refused() -> None:
    """A root that is no valid location is refused by name, instead of silently allowing nothing."""
    with pytest.raises(BadRequest, match="relative/path"):
        allowed_roots("s3://b", "relative/path")


def test_location_outside_roots_is_refused_with_remedy() -> None:
    """The refusal of a location outside of the roots names the location, the roots and the property that adds roots."""
    with pytest.raises(OutsideRoots) as caught:
        check_within("/etc/passwd", ("file:///srv/w", "s3://b/x"))
    assert caught.value.message == (
        "Location /etc/passwd is outside the catalog's allowed roots (file:///srv/w, s3://b/x). Choose a location "
        "below one of them, or have the catalog's owner add a prefix to its property 'allowed-locations'."
    )


def test_location_within_roots_is_accepted() -> None:
    """A location within the roots is accepted."""
    assert check_within("/srv/w/t", ("file:///srv/w",)) is None  # type: ignore[func-returns-value]


def test_location_with_dots_is_refused_as_malformed() -> None:
    """The refusal of a location with `..` names that as the reason, not the roots."""
    with pytest.raises(BadRequest, match="segment") as caught:
        check_within("/srv/w/../x", ("file:///srv/w",))
    assert not isinstance(caught.value, OutsideRoots)


@pytest.mark.parametrize(
    "location, key",
    [
        ("s3a://Bucket/x/", "s3://bucket/x"),
        ("S3N://bucket//x///y", "s3://bucket/x/y"),
        ("s3://bucket/a%20b", "s3://bucket/a b"),
        ("s3://bucket/a%2Fb", "s3://bucket/a/b"),
        ("s3://bucket/a%2", "s3://bucket/a%2"),
        ("s3://bucket/a%ff", "s3://bucket/a%ff"),
        ("s3://bucket/a%00b", "s3://bucket/a%00b"),
        ("s3://bucket/A", "s3://bucket/A"),
        ("s3://Bucket", "s3://bucket"),
        ("abfss://Files@Account.dfs.core.windows.net/x", "abfs://files@account.dfs.core.windows.net/x"),
        ("/x//y/", "file:///x/y"),
        ("file:/x/y", "file:///x/y"),
        ("/a%20b", "file:///a b"),
        ("/", "file:///"),
    ],
)
def test_spellings_of_location_have_one_key(location: str, key: str) -> None:
    """Spellings that some reader treats as one location have one key in the register of locations."""
    assert place_key(location) == key
    assert place_key(key) == key


@pytest.mark.parametrize("location", ["s3://b/a/../c", "s3://b/%2e%2E/c", "/a/./b", "file:///a/%2e%2e/b", "s3://b/x?y"])
def test_ambiguous_location_has_no_key(location: str) -> None:
    """A location that leaves its root for some reader has no key, in any spelling."""
    with pytest.raises(BadRequest):
        place_key(location)
