# SPDX-License-Identifier: Apache-2.0
"""Types of secret settings, and the collection of all secret values for masking in output.

A setting with a password, a key or a token has one of these types, which exclude its value from `repr`, dumps and
errors.
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
"""Number of parts of a setting's name. Longer names are entries of a table."""
_NAMED: Final = re.compile(f"{NAMES}|key", re.IGNORECASE)
"""Names of table entries that are secret. The other entries locate a storage."""
_PASSWORD_IN_URL: Final = re.compile(r"://[^/?#@\s:]*:[^/?#@\s]+@")


def secret(value: object) -> object:
    """Wrap a string in `Secret`; other values are returned unchanged, for pydantic to check."""
    return Secret(value) if isinstance(value, str) else value


SecretText = Annotated[InstanceOf[Secret], BeforeValidator(secret), PlainSerializer(lambda _: MASK)]
"""A setting, or an item of one, whose text is not shown. Further validators after it receive a `Secret`."""


def holds_secret(annotation: object, metadata: Iterable[object] = ()) -> bool:
    """Return whether a type is a secret, or contains one.

    Args:
        annotation: The type of a setting.
        metadata: The metadata of its `Annotated`.
    """
    if annotation is Secret or any(isinstance(each, BeforeValidator) and each.func is secret for each in metadata):
        return True
    parts = (*get_args(annotation), *metadata) if get_origin(annotation) is not None else ()
    return any(holds_secret(part) for part in parts)


def secrets_of(settings: BaseModel) -> tuple[str, ...]:
    """Return the secret strings of the settings, to mask them in output.

    Of a URL this is the password, of a named storage the properties whose names are those of secrets.
    """
    names: list[str] = []
    for name, value in _values(settings):
        if not isinstance(value, Secret):
            continue
        inside = passwords_of_url(value.reveal())
        is_whole = "://" not in value.reveal() and (len(name) == _KEY or _NAMED.search(name[-1]))
        names += inside or ([value.reveal()] if is_whole else [])
    return tuple(dict.fromkeys(text for text in names if text))


def open_passwords(settings: BaseModel) -> Iterator[str]:
    """Yield the settings, as `section.key`, that contain a password in a URL although their type does not hide it."""
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
