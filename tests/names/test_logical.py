# SPDX-License-Identifier: Apache-2.0
"""The logical spelling: separators, policies, vectors of seed 1 and of Gravitino's own tests, and error messages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limnos.names import InvalidName, LogicalCodec
from limnos.names.logical import Policy, check_separator, check_separator_free, separator_conflicts
from tests.names.strategies import attempt, levels, parts, refusal

NESTED = LogicalCodec()
FLAT = LogicalCodec(nested=False)
FLAT_OPEN = LogicalCodec(nested=False, policy="unrestricted")


def test_default_separator_is_a_colon() -> None:
    """The default separator is `:`."""
    assert NESTED.join(("A", "B", "C")) == "A:B:C"


@pytest.mark.parametrize("separator", [":", ";", "$"])
def test_restricted_policy_has_three_separators(separator: str) -> None:
    """Under the policy `restricted`, the separators are `:`, `;` and `$`."""
    assert LogicalCodec(separator).split(f"a{separator}b") == ("a", "b")


@pytest.mark.parametrize("separator", ["|", "~", "^", "-", "_", "=", "@", "→", "x"])
def test_unrestricted_policy_allows_any_safe_separator(separator: str) -> None:
    """Another safe character is allowed as separator under `unrestricted`, and refused under `restricted` with the
    reason.
    """
    assert LogicalCodec(separator, policy="unrestricted").join(("a", "b")) == f"a{separator}b"

    error = refusal(LogicalCodec, separator)

    assert error.reason == "bad-separator"
    assert "'restricted'" in error.message


def test_slash_refusal_matches_example_of_seed() -> None:
    """The refusal of `/` has the separator, the reason and alternatives, as printed in seed 1."""
    error = refusal(check_separator, "/", policy="unrestricted")

    assert str(error) == "Delimiter '/' is not allowed because it conflicts with path parsing. Try ':', ';', or '$'."


@pytest.mark.parametrize(
    "separator,why",
    [
        ("", "it is empty"),
        ("::", "it is more than one character"),
        (".", "it is reserved"),
        ("\x01", "it is reserved"),
        ("\x00", "it is invisible"),
        ("\x1f", "it is invisible"),
        (" ", "it is invisible"),
        ("\n", "it is invisible"),
        ("\u200b", "it is invisible"),
        ("\ud800", "it is invisible"),
        ("%", "it starts an escape in URLs"),
        ("+", "it stands for a space in URLs"),
        ("?", "it ends the path of a URL"),
        ("#", "it ends the query of a URL"),
        ("&", "it separates the parameters of a URL"),
        ("\\", "some HTTP clients turn it into '/'"),
        ("`", "it quotes identifiers"),
        ('"', "it quotes identifiers"),
        ("'", "it quotes text in SQL"),
    ],
)
@pytest.mark.parametrize("policy", ["restricted", "unrestricted"])
def test_unsafe_separators_are_refused_under_both_policies(separator: str, why: str, policy: Policy) -> None:
    """A separator that paths, URLs or identifiers could misinterpret is refused under both policies."""
    error = refusal(LogicalCodec, separator, policy)

    assert error.reason == "bad-separator"
    assert f"is not allowed because {why}" in error.message
    assert error.message.endswith("Try ':', ';', or '$'.")
    assert error.message.isprintable()


@pytest.mark.parametrize(
    "text,name",
    [
        ("team:sales", ("team", "sales")),
        ("team:sales:reports", ("team", "sales", "reports")),
        ("A:B:C", ("A", "B", "C")),
        ("my.schema:sales", ("my.schema", "sales")),
        ("flat", ("flat",)),
        ("a/b:c", ("a/b", "c")),
    ],
)
def test_logical_names_match_vectors(text: str, name: tuple[str, ...]) -> None:
    """A name is joined and split at the separator. A dot is an ordinary character."""
    assert NESTED.split(text) == name
    assert NESTED.join(name) == text


@pytest.mark.parametrize("text", ["team::sales", ":sales", "sales:", ":", "::"])
def test_empty_segment_has_gravitinos_message(text: str) -> None:
    """The refusal of an empty segment has the message of Gravitino."""
    error = refusal(NESTED.split, text)

    assert error.reason == "empty-part"
    assert error.message == f"The SCHEMA name '{text}' contains an empty segment after splitting by ':'."


def test_message_names_the_split_query_parameter() -> None:
    """The message names the query parameter if that was split."""
    error = refusal(NESTED.split, "A::B", what="parentSchema")

    assert error.message == "The parentSchema 'A::B' contains an empty segment after splitting by ':'."


def test_empty_name_is_refused() -> None:
    """An empty name has its own message."""
    assert refusal(NESTED.split, "").message == "The SCHEMA name is empty. Give at least one character."
    assert refusal(FLAT.split, "").reason == "empty-part"


@pytest.mark.parametrize(
    "text,reason", [("a:..", "dot-part"), ("a:b\x1fc", "forbidden-character"), ("a:" + "b" * 256, "part-too-long")]
)
def test_message_shows_illegal_segment_and_reason(text: str, reason: str) -> None:
    """A segment that is not allowed is shown with the reason."""
    error = refusal(NESTED.split, text)

    assert error.reason == reason
    assert error.message.startswith("The SCHEMA name '")
    assert "contains an illegal segment '" in error.message


def test_depth_is_limited() -> None:
    """A logical name has at most 32 parts."""
    assert refusal(NESTED.split, ":".join("a" * 33)).reason == "too-many-parts"


def test_separator_is_reserved_inside_a_namespace_part() -> None:
    """In a catalog with nested namespaces no part may contain the separator, in any spelling."""
    error = refusal(NESTED.join, ("a:b", "c"))

    assert error.reason == "separator-in-part"
    assert "'a:b'" in error.message
    assert "':'" in error.message
    assert refusal(NESTED.check_namespace_part, "a:b").reason == "separator-in-part"
    assert refusal(LogicalCodec("|", "unrestricted").join, ("a|b",)).reason == "separator-in-part"


def test_unrestricted_flat_catalog_allows_separator_in_names() -> None:
    """In a flat catalog under `unrestricted`, the separator is an ordinary character."""
    assert FLAT_OPEN.split("a::b") == ("a::b",)
    assert FLAT_OPEN.join(("a:b",)) == "a:b"
    assert FLAT_OPEN.check_namespace_part("a:b") == "a:b"


def test_restricted_flat_catalog_refuses_separator_in_names() -> None:
    """In a flat catalog under `restricted`, the separator is reserved, too."""
    assert refusal(FLAT.split, "a:b").reason == "separator-in-part"
    assert refusal(FLAT.join, ("a:b",)).reason == "separator-in-part"
    assert FLAT.split("a.b") == ("a.b",)


def test_flat_catalog_has_one_level() -> None:
    """A flat catalog has no spelling for two levels."""
    assert refusal(FLAT_OPEN.join, ("a", "b")).reason == "not-nested"


def test_name_without_levels_is_refused() -> None:
    """A name without levels is refused."""
    assert refusal(NESTED.join, ()).reason == "empty-name"


def test_ancestors_and_scopes_are_listed_in_order() -> None:
    """Ancestors are listed from the outermost, scopes from the innermost, and the parent scopes of seed 1 from the
    outermost with the name itself.
    """
    assert NESTED.ancestors("A:B:C") == ("A", "A:B")
    assert NESTED.ancestors("A") == ()
    assert NESTED.scopes("A:B:C") == ("A:B:C", "A:B", "A")
    assert NESTED.parent_scopes("A:B:C") == ("A", "A:B", "A:B:C")
    assert refusal(NESTED.ancestors, "").reason == "empty-part"


def test_siblings_with_common_prefix_are_not_in_scope() -> None:
    """`raw:events2` and `raw2:events` are not below `raw:events`."""
    assert "raw:events" in NESTED.scopes("raw:events:2024")
    assert "raw:events" not in NESTED.scopes("raw:events2")
    assert "raw:events" not in NESTED.scopes("raw2:events")
    assert "raw|events" in LogicalCodec("|", "unrestricted").scopes("raw|events|2024")


def test_conflicts_are_stored_parts_with_the_separator() -> None:
    """The check of stored names returns the conflicting ones in the given order."""
    assert separator_conflicts(":", ["b:c", "plain", "a:"]) == ["b:c", "a:"]
    assert separator_conflicts(";", ["b:c"]) == []


def test_conflicting_separator_is_refused_with_suggestions() -> None:
    """The message about a conflicting separator names the parts and suggests only separators that no stored part
    contains.
    """
    error = refusal(check_separator_free, ":", ["a:b", "c;d", "plain"])

    assert error.reason == "separator-taken"
    assert error.message == (
        "Delimiter ':' is not allowed because 1 stored namespace name(s) hold it: 'a:b'. "
        "Rename them, or choose another separator ('$')."
    )


def test_conflicting_separator_is_refused_without_suggestions() -> None:
    """If stored parts contain every listed separator, the message suggests none. It shows at most five names."""
    error = refusal(check_separator_free, ":", [f"{number}:;$" for number in range(7)])

    assert "7 stored" in error.message
    assert "'4:;$', …" in error.message
    assert error.message.endswith("Rename them, or choose another separator.")


def test_two_suggested_separators_are_joined_by_or() -> None:
    """Two suggested separators are joined by "or"."""
    assert refusal(check_separator_free, ":", ["a:b"]).message.endswith("(';' or '$').")


def test_unused_separator_passes_the_check() -> None:
    """If no stored part contains the separator, the check passes."""
    stored = ["a", "b.c"]

    check_separator_free(":", stored)

    assert separator_conflicts(":", stored) == []


@given(levels(without=":"))
def test_round_trip(name: tuple[str, ...]) -> None:
    """Every name whose parts do not contain the separator is restored."""
    assert NESTED.split(NESTED.join(name)) == name


@given(parts())
def test_round_trip_in_unrestricted_flat_catalog(part: str) -> None:
    """In a flat catalog under `unrestricted`, every part is restored."""
    assert FLAT_OPEN.split(FLAT_OPEN.join((part,))) == (part,)


@given(st.text(st.sampled_from("ab:."), max_size=12))
def test_text_that_splits_joins_to_itself(text: str) -> None:
    """Splitting accepts exactly the texts that joining produces."""
    name = attempt(NESTED.split, text)

    if isinstance(name, InvalidName):
        assert name.message.isprintable()
    else:
        assert NESTED.join(name) == text


@given(levels())
def test_part_with_separator_is_not_joined(name: tuple[str, ...]) -> None:
    """A name with the separator in a part is refused, and never reads as another name."""
    text = attempt(NESTED.join, name)

    if isinstance(text, InvalidName):
        assert text.reason == "separator-in-part"
    else:
        assert NESTED.split(text) == name
