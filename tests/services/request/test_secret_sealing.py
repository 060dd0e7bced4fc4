# SPDX-License-Identifier: Apache-2.0
"""Encrypted secrets: the values that are encrypted, the key used, decryption, and missing keys."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limnos.files import check_usable
from limnos.model.errors import BadRequest, CannotStart, StorageFailed
from limnos.model.sealed_secrets import keys_of
from limnos.services.request.catalog_properties import check_unmasked, is_secret, mask_passwords, properties_for_owner
from limnos.services.request.secret_sealing import SealingKeys, is_unsealed_secret, key_name

ONE, TWO = b"1" * 32, b"2" * 32
SECRETS = {
    "s3.access-key-id": "AKIA1",
    "s3.secret-access-key": "T0p",
    "jdbc-url": "jdbc:postgresql://h/d?user=u&password=T0p",
    "uri": "thrift://u:T0p@h:1",
}
PLAIN = {"warehouse": "s3://lake/main", "s3.region": "us-east-1", "s3.role-arn": "arn:aws:iam::1:role/x"}


def keys_held(*keys: bytes) -> SealingKeys:
    """Return keys for tests."""
    sealing_keys = SealingKeys(keys)
    sealing_keys.begin()
    return sealing_keys


def test_sealed_values_hide_secrets_and_unseal_to_the_originals() -> None:
    """A sealed value does not contain the secret and names its key. Other properties are unchanged, and unsealing
    restores all values.
    """
    keys = keys_held(ONE)
    sealed = keys.seal_properties(SECRETS | PLAIN)

    assert "T0p" not in str(sealed)
    assert "AKIA1" not in str(sealed)
    assert {name: sealed[name] for name in PLAIN} == PLAIN
    assert {name: keys_of(value) for name, value in sealed.items() if name in SECRETS} == {
        key: {key_name(ONE)} for key in SECRETS
    }
    assert keys.open_properties(sealed) == SECRETS | PLAIN
    assert keys.seal_properties(sealed) == sealed
    assert not any(is_unsealed_secret(name, value) for name, value in sealed.items())
    assert {name for name, value in (SECRETS | PLAIN).items() if is_unsealed_secret(name, value)} == set(SECRETS)


@given(
    st.dictionaries(
        st.sampled_from([*SECRETS, *PLAIN, "token", "x"]), st.text(max_size=40) | st.just("a://b:c@d?key=e&sig=f#g")
    )
)
def test_any_text_can_be_sealed_and_unsealed(properties: dict[str, str]) -> None:
    """Any text can be sealed and unsealed, and does not occur in the sealed value."""
    keys = keys_held(ONE)
    sealed = keys.seal_properties(properties)

    assert keys.open_properties(sealed) == properties
    assert all(properties[name] == value or keys_of(value) for name, value in sealed.items())
    assert all(keys_of(value) for name, value in sealed.items() if is_secret(name) and value)


def test_sealed_password_in_a_url_is_masked_for_readers() -> None:
    """A sealed password in a URL is masked for readers like an unsealed one."""
    sealed = keys_held(ONE).seal_properties(SECRETS)

    assert properties_for_owner(sealed) == properties_for_owner(SECRETS)
    assert mask_passwords(sealed["uri"]) == "thrift://u:******@h:1"


def test_rotation_seals_with_newest_and_unseals_with_old_keys() -> None:
    """After a key rotation old values can be unsealed, and a write seals them with the newest key."""
    before = keys_held(ONE).seal_properties(SECRETS)
    both = keys_held(ONE, TWO)
    after = both.seal_properties(before)

    assert both.open_properties(before) == both.open_properties(after) == SECRETS
    assert {key for value in after.values() for key in keys_of(value)} == {key_name(TWO)}
    assert both.current == key_name(TWO)
    assert keys_held(TWO).open_properties(after) == SECRETS


def test_value_with_missing_key_is_refused_with_the_key_id() -> None:
    """A value whose key is missing stays sealed and is not sealed again. Its use is refused with the key's id."""
    sealed = keys_held(ONE).seal_properties(SECRETS)
    other = keys_held(TWO)

    assert other.open_properties(sealed) == other.seal_properties(sealed) == sealed
    with pytest.raises(StorageFailed, match=key_name(ONE)):
        check_usable(other.open_properties(sealed))
    check_usable(other.open_properties(other.seal_properties(sealed | SECRETS)))


def test_sealed_value_is_bound_to_its_property() -> None:
    """A sealed value is bound to its property and cannot be moved to another; an altered value is refused."""
    keys = keys_held(ONE)
    sealed = keys.seal_properties(SECRETS)["s3.secret-access-key"]

    assert keys.open_properties({"s3.access-key-id": sealed}) == {"s3.access-key-id": sealed}
    altered = f"{sealed[:-2]}{'AA' if sealed[-2:] != 'AA' else 'BB'}"
    assert keys.open_properties({"s3.secret-access-key": altered}) == {"s3.secret-access-key": altered}


def test_sealed_value_from_a_client_is_refused() -> None:
    """A value from a client that has the form of a sealed one is refused, because the server would unseal it for the
    client.
    """
    sealed = keys_held(ONE).seal_properties(SECRETS)

    for name, value in sealed.items():
        with pytest.raises(BadRequest, match=f"{name} is a secret that a server has sealed"):
            check_unmasked({name: value})


def test_properties_are_stored_unchanged_without_keys() -> None:
    """Without keys, properties are stored unchanged."""
    keys = keys_held()

    assert keys.seal_properties(SECRETS) == SECRETS
    assert keys.current is None


def test_key_file_is_private_and_shared_between_processes(tmp_path: Path) -> None:
    """The key file is private, and a second process uses the same key. A rotation keeps the old key, and other
    processes see the new one.
    """
    file = tmp_path / "secrets.key"
    first, second = SealingKeys(file=file, makes=True), SealingKeys(file=file, makes=True)
    first.begin()
    second.begin()
    sealed = first.seal_properties(SECRETS)

    assert file.stat().st_mode & 0o777 == 0o600
    assert second.open_properties(sealed) == SECRETS
    assert first.renew()
    assert second.current == first.current != next(iter(keys_of(sealed["uri"])))
    assert first.open_properties(sealed) == SECRETS
    assert [each.name for each in tmp_path.iterdir()] == ["secrets.key"]


def test_key_file_readable_by_others_or_invalid_is_refused(tmp_path: Path) -> None:
    """A key file that others can read, or that has an invalid line, is refused without quoting its content. An error at
    a later read keeps the loaded keys.
    """
    file = tmp_path / "keys"
    file.write_text(f"# mine\n{base64.b64encode(ONE).decode()}\n")
    file.chmod(0o640)
    with pytest.raises(CannotStart) as refused:
        keys_in(file)
    assert "640" in refused.value.why
    file.chmod(0o600)
    keys = keys_in(file)
    assert keys.current == key_name(ONE)
    file.write_text("bm90IGEga2V5\n")
    with pytest.raises(CannotStart) as refused:
        keys_in(file)
    assert "this has 9" in refused.value.why
    assert keys.open_properties(keys.seal_properties(SECRETS)) == SECRETS


def test_rotation_does_not_write_the_operators_key_file(tmp_path: Path) -> None:
    """If an operator manages the key file, a rotation uses the operator's newest key and does not write the file."""
    file = tmp_path / "keys"
    file.touch(0o600)
    keys = keys_in(file)
    assert keys.current is None
    assert not keys.renew()
    with file.open("a") as out:
        out.write(base64.b64encode(TWO).decode() + "\n")
    assert not keys.renew()
    assert keys.current == key_name(TWO)


def keys_in(file: Path) -> SealingKeys:
    """Write an operator's key file."""
    sealing_keys = SealingKeys(file=file)
    sealing_keys.begin()
    return sealing_keys


def test_sealing_the_same_secret_twice_gives_different_values() -> None:
    """Sealing the same secret twice gives different values."""
    keys = keys_held(os.urandom(32))

    assert keys.seal_properties(SECRETS) != keys.seal_properties(SECRETS)
