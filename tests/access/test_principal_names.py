# SPDX-License-Identifier: Apache-2.0
"""Names of new users, groups and roles: which names PRECIS and UTS 39 allow."""

from __future__ import annotations

import pytest

from limnos.access.principal_names import check_new_name, look_alike, name_problem
from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind

DOUBLE = "admin\u200b"
"""Looks like `admin`, but has a zero-width space at its end."""


@pytest.mark.parametrize(
    "name",
    [
        "ana",
        "ana.maria+x@example.org",
        "Ana Maria",
        "DOMAIN\\joe",
        "cn=joe,ou=people",
        "100%",
        "M\u00fcller",
        "\u0418\u0432\u0430\u043d \u041f\u0435\u0442\u0440\u043e\u0432",
        "\u5f20\u4f1f",
        "\u5c71\u7530Taro",
        "\uae40 \ucca0\uc218",
        "\u05d3\u05d5\u05d3",
        "\u0645\u062d\u0645\u062f",
        "\u0915\u094d\u0937",
        "\u0438\u0432\u0430\u043d@example.org",
    ],
)
def test_names_of_one_script_are_accepted(name: str) -> None:
    """E-mail addresses, names with spaces, directory names, and names in other scripts are accepted."""
    assert name_problem(name) is None


@pytest.mark.parametrize(
    "name, words",
    [
        (DOUBLE, r"U\+200B is not allowed"),
        ("ad\u00admin", r"U\+00AD is not allowed"),
        ("admin\ufe0f", r"U\+FE0F is not allowed"),
        ("admin\u3164", r"U\+3164 is not allowed"),
        ("ana\u2003b", r"U\+2003 is not allowed"),
        ("\u0430dmin", "mixes letters of Cyrillic and Latin"),
        ("joe@ex\u0430mple.org", "mixes letters of Cyrillic and Latin"),
        ("\uff41na", r"another spelling of ana\. Write that one \(U\+0061 U\+006E U\+0061\)"),
        ("Jose\u0301", "another spelling of Jos\u00e9"),
        (" ana", "a leading, trailing or repeated space"),
        ("ana ", "a leading, trailing or repeated space"),
        ("ana  b", "a leading, trailing or repeated space"),
        ("123\u0645\u062d", "in another order"),
        ("\u202eana", "bidirectional formatting"),
    ],
)
def test_refusal_of_deceptive_name_has_its_code_point_or_form(name: str, words: str) -> None:
    """The refusal of a deceptive name contains the code point or the form of the name, because its display is
    misleading.
    """
    with pytest.raises(BadRequest, match=words):
        check_new_name(name, Kind.USER)


@pytest.mark.parametrize(
    "name, twin",
    [("adm\u0131n", "admin"), ("\u0455\u0441\u043e\u0440\u0435", "scope"), ("\u0430-team", "a-team")],
)
def test_name_similar_to_existing_name_is_refused(name: str, twin: str) -> None:
    """A name whose words are each of one script but that looks like an existing name is refused; without that name it
    is accepted.
    """
    assert look_alike(name, ["other", twin]) == twin
    assert look_alike(name, ["other", name]) is None
    with pytest.raises(BadRequest, match=f"looks like {twin}"):
        check_new_name(name, Kind.USER, known=[twin])


@pytest.mark.parametrize("name", ["userl", "corn", "\u0438\u0432\u0430\u043d", "jos\u00e9"])
def test_unambiguous_names_are_never_confused(name: str) -> None:
    """Two ASCII names are never confused with each other, nor is a name with a letter that resembles no ASCII
    letter.
    """
    assert look_alike(name, ["user1", "com", "jose", "ivan"]) is None
