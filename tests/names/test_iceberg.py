# SPDX-License-Identifier: Apache-2.0
"""Iceberg REST's paths, parents, bodies and prefixes, as its clients encode them."""

from __future__ import annotations

from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limnos.names import InvalidName, iceberg
from tests.names.strategies import attempt, levels, parts, refusal


@pytest.mark.parametrize(
    "raw,name",
    [
        (b"a", ("a",)),
        (b"sales_east", ("sales_east",)),
        (b"a%1Fb", ("a", "b")),
        (b"a%1fb%1FC", ("a", "b", "C")),
        (b"a\x1fb", ("a", "b")),
        (b"a\x1fb%1Fc", ("a", "b", "c")),
        (b"a.b", ("a.b",)),
        (b"a%2Eb%1Fc", ("a.b", "c")),
        (b"a%2Fb%1Fc", ("a/b", "c")),
        (b"a+b", ("a b",)),
        (b"a%20b", ("a b",)),
        (b"a%2Bb", ("a+b",)),
        (b"100%25", ("100%",)),
        (b"a%251Fb", ("a%1Fb",)),
        (b"%E6%97%A5%1F%e6%9c%ac", ("日", "本")),
        ("日本".encode(), ("日本",)),
        (b"A:B", ("A:B",)),
    ],
)
def test_path_levels_are_split_then_decoded_once(raw: bytes, name: tuple[str, ...]) -> None:
    """The raw path segment is split first, then each level is decoded once, with `+` as space."""
    assert iceberg.decode_path(raw) == name


@pytest.mark.parametrize(
    "raw,reason",
    [
        (b"", "empty-part"),
        (b"%1F", "empty-part"),
        (b"a%1F", "empty-part"),
        (b"%1Fa", "empty-part"),
        (b"a%1F%1Fb", "empty-part"),
        (b"a%", "bad-escape"),
        (b"%%1F", "bad-escape"),
        (b"a%2%1Fb", "bad-escape"),
        (b"a%zz", "bad-escape"),
        (b"%FF", "bad-utf8"),
        (b"\xff", "bad-utf8"),
        (b"%E6%1F%97%A5", "bad-utf8"),
        (b"%00", "forbidden-character"),
        (b"a%01b", "forbidden-character"),
        (b"..", "dot-part"),
        (b"%2E%2E", "dot-part"),
        (b"a%1F.", "dot-part"),
        (b"a" * 256, "part-too-long"),
        (b"%1F".join([b"a"] * 33), "too-many-parts"),
    ],
)
def test_malformed_paths_are_refused(raw: bytes, reason: str) -> None:
    """Each malformed segment has its own reason."""
    assert refusal(iceberg.decode_path, raw).reason == reason


@pytest.mark.parametrize(
    "name,text",
    [
        (("a",), "a"),
        (("a", "b"), "a%1Fb"),
        (("a.b", "c d"), "a.b%1Fc%20d"),
        (("a/b", "c%d"), "a%2Fb%1Fc%25d"),
        (("a+b",), "a%2Bb"),
        (("日",), "%E6%97%A5"),
    ],
)
def test_paths_are_encoded_with_advertised_separator(name: tuple[str, ...], text: str) -> None:
    """Everything but unreserved characters is escaped, and levels are joined by the advertised separator."""
    assert iceberg.encode_path(name) == text


@given(levels())
def test_path_round_trip(name: tuple[str, ...]) -> None:
    """Every name comes back from its path segment."""
    assert iceberg.decode_path(iceberg.encode_path(name).encode()) == name


@given(levels())
def test_java_client_paths_are_decoded(name: tuple[str, ...]) -> None:
    """A path of a client that form-encodes and joins with the advertised separator is decoded to the name."""
    sent = "%1F".join(quote_plus(level, safe="") for level in name)

    assert iceberg.decode_path(sent.encode()) == name


@given(levels())
def test_pyiceberg_paths_are_decoded(name: tuple[str, ...]) -> None:
    """A path of PyIceberg is decoded to the name: it quotes the levels and joins them by the bare separator, which its
    HTTP library escapes.
    """
    sent = "\x1f".join(quote(level, safe="") for level in name)

    assert iceberg.decode_path(sent.encode()) == name
    assert iceberg.decode_path(sent.replace("\x1f", "%1F").encode()) == name


@given(parts())
def test_single_names_round_trip(part: str) -> None:
    """A table's name in a path is one part, whatever characters it contains."""
    assert iceberg.decode_name(iceberg.encode_name(part).encode()) == part
    assert iceberg.decode_name(quote_plus(part, safe="").encode()) == part


def test_table_name_with_separator_is_refused() -> None:
    """A table name that contains U+001F is refused, not split."""
    assert refusal(iceberg.decode_name, b"a%1Fb").reason == "forbidden-character"


def test_empty_parent_means_top_level() -> None:
    """An empty `parent` means the top level."""
    assert iceberg.decode_parent(b"") == ((), None)


@pytest.mark.parametrize(
    "raw,first,second",
    [
        (b"a", ("a",), None),
        (b"a%1Fb", ("a", "b"), None),
        (b"a+b", ("a b",), None),
        (b"a%20b", ("a b",), None),
        (b"a%2520b%1Fc", ("a%20b", "c"), ("a b", "c")),
        (b"50%25", ("50%",), None),
        (b"a%2500", ("a%00",), None),
        (b"a%252Eb", ("a%2Eb",), ("a.b",)),
        (b"a%252Bb", ("a%2Bb",), ("a+b",)),
        (b"a%2525", ("a%25",), ("a%",)),
    ],
)
def test_parent_has_second_reading_only_if_valid(
    raw: bytes, first: tuple[str, ...], second: tuple[str, ...] | None
) -> None:
    """A second reading of `parent` exists only if decoding it again gives another valid name."""
    assert iceberg.decode_parent(raw) == (first, second)


@given(levels())
def test_java_client_parent_is_first_reading(name: tuple[str, ...]) -> None:
    """Java clients join the levels by U+001F and encode the whole: the first reading is the name."""
    sent = quote_plus("\x1f".join(name), safe="")

    assert iceberg.decode_parent(sent.encode())[0] == name


@given(levels())
def test_pyiceberg_parent_is_one_of_two_readings(name: tuple[str, ...]) -> None:
    """PyIceberg quotes each level and then the whole: one of the two readings is the name."""
    sent = quote_plus("\x1f".join(quote(level, safe="") for level in name), safe="")

    first, second = iceberg.decode_parent(sent.encode())

    assert name == (first if second is None else second)


@pytest.mark.parametrize(
    "value,reason",
    [
        ("a", "bad-type"),
        (None, "bad-type"),
        (["a", 1], "bad-type"),
        ([], "empty-name"),
        (["a", ""], "empty-part"),
        (["a\x1fb"], "forbidden-character"),
    ],
)
def test_invalid_namespaces_in_bodies_are_refused(value: object, reason: str) -> None:
    """A namespace in a body that is not an array of valid parts is refused."""
    assert refusal(iceberg.decode_body, value).reason == reason


@pytest.mark.parametrize("raw", [b"lake.main", b"lake%2Emain", b"l%61ke.main"])
def test_prefix_joins_metalake_and_catalog(raw: bytes) -> None:
    """The prefix consists of metalake and catalog, joined by its only dot, escaped or not."""
    assert iceberg.decode_prefix(raw) == ("lake", "main")


def test_prefix_round_trip() -> None:
    """A prefix decodes to the metalake and catalog from which it was made."""
    assert iceberg.encode_prefix("lake", "my-cat") == "lake.my-cat"
    assert iceberg.decode_prefix(b"lake.my-cat") == ("lake", "my-cat")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"main",
        b".main",
        b"lake.",
        b"lake.a.b",
        b"la-ke.main",
        b"lake.-a",
        b"lake.%FF",
        b"lake.ma%2Fin",
        b"lake.%",
        b"\xff.a",
    ],
)
def test_malformed_prefixes_are_refused(raw: bytes) -> None:
    """Anything but two legal names around one dot is refused."""
    assert refusal(iceberg.decode_prefix, raw).reason in ("name-pattern", "bad-utf8", "bad-escape")


def test_catalog_with_dot_has_no_prefix() -> None:
    """A catalog whose name contains a dot has no prefix."""
    assert refusal(iceberg.encode_prefix, "lake", "a.b").reason == "name-pattern"


@pytest.mark.parametrize(
    "text,names", [("main", (None, "main")), ("lake/main", ("lake", "main")), ("lake.main", ("lake", "main"))]
)
def test_warehouse_is_catalog_or_metalake_and_catalog(text: str, names: tuple[str | None, str]) -> None:
    """A warehouse parameter is a catalog, or a metalake and a catalog."""
    assert iceberg.decode_warehouse(text) == names


@pytest.mark.parametrize("text", ["", "/", "lake/", "/main", "a/b/c", "a.b.c", "a.b/c", "lake.", "s3://bucket/x"])
def test_malformed_warehouses_are_refused(text: str) -> None:
    """Any other warehouse parameter is refused."""
    assert refusal(iceberg.decode_warehouse, text).reason == "name-pattern"


@given(st.binary(max_size=12))
def test_any_bytes_decode_or_are_refused(raw: bytes) -> None:
    """For any bytes the decoders return a name that encodes to itself, or raise InvalidName."""
    name = attempt(iceberg.decode_path, raw)

    if isinstance(name, InvalidName):
        assert name.message.isprintable()
    else:
        assert iceberg.decode_path(iceberg.encode_path(name).encode()) == name


def test_advertised_separator_is_url_encoded() -> None:
    """Clients read the separator from the configuration URL-encoded."""
    assert iceberg.SEPARATOR_ADVERTISED == quote(iceberg.SEPARATOR) == "%1F"


@pytest.mark.parametrize(
    "levels, text",
    [
        (("ns", "tbl"), "ns.tbl"),
        (("non-existing", "1t"), "non-existing.1t"),
        (("数据", "a/b"), "数据.a/b"),
        (("a.b", "c"), "`a.b`.c"),
        (("two words", "tick`"), "`two words`.`tick\\``"),
        (("line\nfeed", ""), "`line\\nfeed`.``"),
    ],
)
def test_messages_show_levels_as_iceberg_clients_do(levels: tuple[str, ...], text: str) -> None:
    """A message shows levels as Iceberg's clients do, and quotes only where the text would be ambiguous or
    invisible.
    """
    assert iceberg.render(levels) == text


@pytest.mark.parametrize(
    "raw, levels",
    [
        (b"a+b", ("a b",)),
        (b"a%2Bb", ("a+b",)),
        (b"a+b%20c", ("a+b c",)),
        (b"a+b%1Fc%20d", ("a+b", "c d")),
        (b"a%20b%1Fc+d", ("a b", "c+d")),
        (b"a+b%2520c", ("a b%20c",)),
    ],
)
def test_plus_beside_an_escaped_space_is_a_plus(raw: bytes, levels: tuple[str, ...]) -> None:
    """`+` is a space, as form-encoding clients write it, unless the same segment shows that the client does not
    form-encode.
    """
    assert iceberg.decode_path(raw) == levels


@pytest.mark.parametrize("raw, name", [(b"a+b", "a b"), (b"a+b%20c", "a+b c")])
def test_plus_in_table_name_follows_rule_of_levels(raw: bytes, name: str) -> None:
    """In a table's name, `+` follows the same rule as in a level."""
    assert iceberg.decode_name(raw) == name


def test_prefix_is_case_sensitive() -> None:
    """A prefix is case-sensitive, escaped or not, because names of metalakes and catalogs are."""
    assert iceberg.decode_prefix(b"Lake.Main") == ("Lake", "Main")
    assert iceberg.decode_prefix(b"Lake%2EMain") == ("Lake", "Main")
