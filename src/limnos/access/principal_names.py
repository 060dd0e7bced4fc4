# SPDX-License-Identifier: Apache-2.0
"""Principal names: the names that a new user, group or role may have: PRECIS usernames without confusables (UTS 39).

Existing principals keep their names, which are not checked. Two libraries have the tables: `precis_i18n` (RFC 8264,
8265) and `confusable_homoglyphs` (Unicode's scripts and confusables). The second one is imported at the first name with
a letter beyond ASCII, because its tables take some megabytes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable
from functools import cache
from typing import Final

import precis_i18n

from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind
from limnos.model.principals import NAME_BYTES_MAX, is_name
from limnos.model.privileges import escape_percent
from limnos.store.tx import Tx

_PROFILE: Final = precis_i18n.get_profile("UsernameCasePreserved")


_WORDS: Final = re.compile("[^\x00-/:-@\\[-`{-\x7f]+")
"""Sequences of characters without ASCII punctuation: the parts of an e-mail address, of `team-a` or of `Ana Maria`."""


_NO_SCRIPT: Final = frozenset({"COMMON", "INHERITED"})


_TOGETHER: Final = (
    frozenset({"LATIN", "HAN", "HIRAGANA", "KATAKANA"}),
    frozenset({"LATIN", "HAN", "BOPOMOFO"}),
    frozenset({"LATIN", "HAN", "HANGUL"}),
)
"""Sets of scripts that one word may mix: UTS 39, section 5.2, "Highly Restrictive"."""


def check_new_name(name: str, kind: Kind, *, known: Iterable[str] = ()) -> str:
    """Return the name if a new user, group or role may have it.

    Args:
        name: The name as it would be stored.
        kind: USER, GROUP or ROLE, for the message.
        known: Names with which it must not be confusable.

    Raises:
        BadRequest: The name has a character outside of PRECIS's UsernameCasePreserved (RFC 8265, section 3.4), or a
            form that PRECIS would change. It has a space at an end or two in a row, a word of several scripts, or looks
            like a known name.
    """
    problem = name_problem(name)
    if problem is not None:
        raise BadRequest(f"A new {kind.word} cannot be called {_escape_name(name)}: {problem}")
    twin = look_alike(name, known)
    if twin is not None:
        raise BadRequest(
            f"A new {kind.word} cannot be called {_escape_name(name)}: it looks like {escape_percent(twin)}, which is"
            " another name. Choose one that shows the difference"
        )
    return name


def name_problem(name: str) -> str | None:
    """Return the reason why a name is refused, with advice; None for an allowed name. Does not look for confusable
    names.
    """
    if not is_name(name):
        return (
            f"names have 1 to {NAME_BYTES_MAX} bytes, and no control characters or bidirectional formatting characters"
        )
    parts = name.split(" ")
    if not all(parts):
        return "a leading, trailing or repeated space is not visible. Leave it out"
    for part in parts:
        try:
            enforced = _PROFILE.enforce(part)
        except UnicodeEncodeError as error:
            return _name_refusal(part[error.start : error.end], error.reason.rpartition("/")[2])
        if enforced != part:
            return f"it is another spelling of {escape_percent(enforced)}. Write that one ({_code_points(enforced)})"
    if name.isascii():
        return None
    for word in _WORDS.findall(name):
        scripts = _scripts(word)
        if len(scripts) > 1 and not any(scripts <= together for together in _TOGETHER):
            return (
                f"a word of it mixes letters of {' and '.join(sorted(each.capitalize() for each in scripts))}. Use one"
                " script for a word"
            )
    return None


def _name_refusal(text: str, rule: str) -> str:
    if rule == "bidi_rule":
        return "its parts would be displayed in another order (the bidi rule of RFC 5893). Write it in one direction"
    return (
        f"{_code_points(text)} is not allowed in it ({rule.replace('_', ' ')}, RFC 8264)."
        " Names have letters, digits and the punctuation of ASCII"
    )


def look_alike(name: str, known: Iterable[str]) -> str | None:
    """Return the name among `known` that is confusable with this one; None if there is none.

    Only a name whose letters beyond ASCII are all confusable with ASCII letters is compared, so that `user1` and
    `userl` may coexist.
    """
    skeleton = ascii_skeleton(name)
    if skeleton is None:
        return None
    return next((each for each in known if each != name and _skeleton(each) == skeleton), None)


def ascii_skeleton(name: str) -> str | None:
    """Return the skeleton (UTS 39, section 4) of a name that imitates ASCII; None for other names."""
    if name.isascii():
        return None
    skeleton = _skeleton(name)
    return skeleton if skeleton.isascii() else None


def _scripts(word: str) -> frozenset[str]:
    from confusable_homoglyphs.categories import alias  # noqa: PLC0415 - its tables are read at the import

    return frozenset(map(alias, word)) - _NO_SCRIPT


def _skeleton(name: str) -> str:
    prototype = _prototypes()
    letters = (prototype.get(letter, letter) for letter in unicodedata.normalize("NFD", name))
    return unicodedata.normalize("NFD", "".join(letters))


@cache
def _prototypes() -> dict[str, str]:
    """Return the letters in Unicode's table of confusables, each with its prototype.

    The library stores each pair in both directions. A mapped letter is in one pair, a prototype usually in several.
    """
    from confusable_homoglyphs.confusables import confusables_data  # noqa: PLC0415 - its tables are read at the import

    prototypes = {}
    for letter, pairs in confusables_data.items():
        other = pairs[0]["c"]
        backwards = len(confusables_data[other])
        if letter.isascii() and not other.isascii():
            continue  # a percent sign
        if len(pairs) == 1 and (backwards > 1 or other.isascii()):
            prototypes[letter] = other
    return prototypes


def _escape_name(name: str) -> str:
    """Return the name, followed by its escaped form if it has non-ASCII letters, which may be confusable."""
    return escape_percent(name) if name.isascii() else f"{escape_percent(name)} ({name[:80]!a})"


def _code_points(text: str) -> str:
    return " ".join(f"U+{ord(each):04X}" for each in text[:40])


def check_principal_name(name: str, kind: Kind) -> str:
    """Check a user's, group's or role's name. Raises BadRequest for a bad length or a control or bidirectional
    character.
    """
    if not is_name(name):
        raise BadRequest(
            f"A {kind.word}'s name has 1 to {NAME_BYTES_MAX} bytes, and no control characters or bidirectional"
            f" formatting characters; this is not one: {name!a}"
        )
    return name


def check_new_user(tx: Tx, user: str, *, admins: Collection[str]) -> None:
    """Check the name of a new user. A name that already exists in a metalake or among the service admins is accepted.

    Raises BadRequest for a name that `check_new_name` refuses.
    """
    if user not in admins and not tx.principals.user_status(user).is_known:
        check_new_name(user, Kind.USER, known=admins)
