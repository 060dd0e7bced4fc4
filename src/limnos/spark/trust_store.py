# SPDX-License-Identifier: Apache-2.0
"""The trust store of a Spark process: the system's certificate authorities and the authorities of a PEM file.

Writes a trust store for Java, once per set of authorities. Must not know sessions. Java accepts exactly one trust
store, so the file includes the system's authorities. The format is the JDK's `JKS`, version 2, which every Java reads:
named certificates, and a digest with a well-known password.
"""

from __future__ import annotations

import hashlib
import os
import ssl
import struct
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from limnos.model.errors import BadRequest

PASSWORD: Final = "changeit"  # noqa: S105 - Java's default for stores without a secret
_SALT: Final = b"Mighty Aphrodite"
_MAGIC, _VERSION, _TRUSTED = 0xFEEDFEED, 2, 2


def java_options(ca_file: Path, cache: Path) -> str:
    """Return the JVM options that trust the system's certificate authorities and the authorities of a PEM file.

    Raises BadRequest for an unusable PEM file.
    """
    store = _write_store(store_of(authorities(ca_file)), cache)
    return f"-Djavax.net.ssl.trustStore={store} -Djavax.net.ssl.trustStorePassword={PASSWORD}"


def authorities(ca_file: Path) -> list[bytes]:
    """Return the certificates of the system's authorities and of a PEM file.

    Raises BadRequest for an unusable file.
    """
    context = ssl.create_default_context()
    folder = ssl.get_default_verify_paths().capath
    for file in Path(folder).glob("*.pem") if folder else ():
        context.load_verify_locations(file)
    try:
        context.load_verify_locations(ca_file)
    except (OSError, ssl.SSLError) as error:
        raise BadRequest(f"{ca_file} is not a readable PEM file of CA certificates: {error}") from None
    return sorted(context.get_ca_certs(binary_form=True))


def store_of(certificates: Iterable[bytes]) -> bytes:
    """Encode a Java key store (JKS) that trusts these DER certificates."""
    entries = [_entry(number, each) for number, each in enumerate(certificates)]
    body = struct.pack(">III", _MAGIC, _VERSION, len(entries)) + b"".join(entries)
    return body + hashlib.sha1(PASSWORD.encode("utf-16-be") + _SALT + body).digest()  # noqa: S324 - the format requires it


def _entry(number: int, certificate: bytes) -> bytes:
    head = struct.pack(">I", _TRUSTED) + _text(f"authority-{number}") + struct.pack(">Q", 0) + _text("X.509")
    return head + struct.pack(">I", len(certificate)) + certificate


def _text(value: str) -> bytes:
    return struct.pack(">H", len(value)) + value.encode("ascii")


def _write_store(store: bytes, cache: Path) -> Path:
    """Write a store atomically under a name with its digest, unless it exists. Returns the path."""
    file = cache / f"authorities-{hashlib.sha256(store).hexdigest()[:16]}.jks"
    if not file.exists():
        cache.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=cache)
        with os.fdopen(handle, "wb") as out:
            out.write(store)
        Path(temporary).replace(file)
    return file
