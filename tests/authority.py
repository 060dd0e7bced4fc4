# SPDX-License-Identifier: Apache-2.0
"""A certificate authority for tests, created for each run."""

from __future__ import annotations

import datetime as dt
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
DAY = dt.timedelta(days=1)


class Authority:
    """Issues certificates for this machine. `file` is the authority's certificate, which clients trust."""

    def __init__(self, directory: Path, name: str = "Authority of a test") -> None:
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(self._name, self._key, starts=-1, ends=3_000)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.file = directory / f"{name.replace(' ', '-')}.pem"
        self.file.write_bytes(builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def give(self, certificate: Path, key: Path, *, starts: float = -1, ends: float = 30, rsa_key: bool = False) -> int:
        """Write a certificate and key for localhost, each atomically.

        Times are in days from now. Returns the serial number.
        """
        own: Key = (
            rsa.generate_private_key(public_exponent=65537, key_size=2048)
            if rsa_key
            else ec.generate_private_key(ec.SECP256R1())
        )
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        builder = self._builder(name, own, starts=starts, ends=ends)
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        signed = builder.sign(self._key, hashes.SHA256())
        put(key, text_of(own))
        put(certificate, signed.public_bytes(serialization.Encoding.PEM))
        return signed.serial_number

    def _builder(self, subject: x509.Name, key: Key, *, starts: float, ends: float) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + starts * DAY)
            .not_valid_after(now + ends * DAY)
        )


def text_of(key: Key, password: bytes | None = None) -> bytes:
    """Return a key as PEM, encrypted if there is a password."""
    hidden = serialization.NoEncryption() if password is None else serialization.BestAvailableEncryption(password)
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, hidden)


def put(file: Path, content: bytes) -> None:
    """Write a file atomically, as tools that renew certificates do."""
    beside = file.with_suffix(".new")
    beside.write_bytes(content)
    beside.replace(file)
