"""Settings that are secrets: their types, and the texts of those that are set.

May import pydantic, `model` and this room. A setting that holds a password, a key or a token has one of these types; the type keeps its text out of
`repr`, of dumps and of errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Final, get_args, get_origin

from pydantic import BaseModel, InstanceOf
from pydantic.functional_serializers import PlainSerializer
from pydantic.functional_validators import BeforeValidator

from limnos.model.secrets import MASK, NAMES, Secret, passwords_of_url

_KEY: Final = 2
"""Parts of a setting's name; what has more is an entry of a table."""
_NAMED: Final = re.compile(f"{NAMES}|key", re.IGNORECASE)
"""Entries of a table that are secret: the others say where a store is."""
_PASSWORD_IN_URL: Final = re.compile(r"://[^/?#@\s:]*:[^/?#@\s]+@")


def secret(value: object) -> object:
    """Take a text as a secret."""
    return Secret(value) if isinstance(value, str) else value


SecretText = Annotated[InstanceOf[Secret], BeforeValidator(secret), PlainSerializer(lambda _: MASK)]
"""A setting, or an item of one, whose text is not shown. Further validators go behind it and are given a `Secret`."""


def holds_secret(annotation: object, metadata: Iterable[object] = ()) -> bool:
    """Say whether a type is a secret, or has one among its parts.

    Args:
        annotation: The type of a setting.
        metadata: What stands beside it in an `Annotated`.
    """
    if annotation is Secret or any(isinstance(each, BeforeValidator) and each.func is secret for each in metadata):
        return True
    parts = (*get_args(annotation), *metadata) if get_origin(annotation) is not None else ()
    return any(holds_secret(part) for part in parts)


def secrets_of(settings: BaseModel) -> tuple[str, ...]:
    """Return the texts of all secrets that are set, and the passwords inside them, to be kept out of what is printed."""
    found: list[str] = []
    for name, value in _values(settings):
        if not isinstance(value, Secret):
            continue
        inside = passwords_of_url(value.reveal())
        is_whole = "://" not in value.reveal() and (len(name) == _KEY or _NAMED.search(name[-1]))
        found += inside or ([value.reveal()] if is_whole else [])
    return tuple(dict.fromkeys(text for text in found if text))


def open_passwords(settings: BaseModel) -> Iterator[str]:
    """Name the settings that hold a password inside a URL and would show it, as `section.key`."""
    for name, value in _values(settings):
        if isinstance(value, str) and _PASSWORD_IN_URL.search(value):
            yield ".".join(name[:2])


def _values(value: object, name: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    if isinstance(value, BaseModel):
        for key in type(value).model_fields:
            yield from _values(getattr(value, key), (*name, key))
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _values(each, (*name, str(key)))
    elif isinstance(value, tuple | list):
        for each in value:
            yield from _values(each, name)
    else:
        yield name, value
