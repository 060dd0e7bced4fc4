"""The physical spelling: encoded parts joined by U+0001."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limnos.names import InvalidName, physical
from tests.names.strategies import attempt, levels, refusal


@given(levels())
def test_round_trip(name: tuple[str, ...]) -> None:
    """Every name has one physical form, which decodes to it."""
    assert physical.decode(physical.encode(name)) == name


@given(st.text())
def test_a_part_of_any_text_round_trips(text: str) -> None:
    """Encoding a part is reversible for any text, and leaves no dot or separator in it."""
    key = physical.encode_part(text)

    assert physical.decode_part(key) == text
    assert not set(key) & {".", physical.SEPARATOR}


@given(st.text(st.sampled_from("ab%25E01.\x01\x00"), max_size=12))
def test_decoding_is_strict(key: str) -> None:
    """What decodes at all is exactly what encoding makes."""
    name = attempt(physical.decode, key)

    if isinstance(name, InvalidName):
        assert name.message.isprintable()
    else:
        assert physical.encode(name) == key


@pytest.mark.parametrize(
    "name,key",
    [
        (("A", "B", "C"), "A\x01B\x01C"),
        (("my.schema", "sales"), "my%2Eschema\x01sales"),
        (("a%b",), "a%25b"),
        (("a%2Eb",), "a%252Eb"),
        (("a:b", "c"), "a:b\x01c"),
    ],
)
def test_vectors(name: tuple[str, ...], key: str) -> None:
    """Dots and percent signs are escaped in each part; the separator is U+0001 (seed 1)."""
    assert physical.encode(name) == key
    assert physical.decode(key) == name


@pytest.mark.parametrize(
    "key,reason",
    [
        ("a.b", "bad-escape"),
        ("a%", "bad-escape"),
        ("a%2eb", "bad-escape"),
        ("%41", "bad-escape"),
        ("a%01b", "forbidden-character"),
        ("a\x01", "empty-part"),
        ("\x01", "empty-part"),
        ("", "empty-part"),
        ("%2E", "dot-part"),
    ],
)
def test_malformed_keys_are_refused(key: str, reason: str) -> None:
    """A string that encoding cannot make is refused with its reason."""
    assert refusal(physical.decode, key).reason == reason


def test_no_level_has_no_physical_name() -> None:
    """The catalog itself has no physical form."""
    assert refusal(physical.encode, ()).reason == "empty-name"
