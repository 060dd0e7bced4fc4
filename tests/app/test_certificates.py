# SPDX-License-Identifier: Apache-2.0
"""TLS certificates of a server: which ones a start refuses, and how a running server loads changed files."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from limnos.app.certificates import ENDS, RELOADS, CertificateReloader, NoCertificate, certificates_of
from limnos.config.server import TlsSection
from limnos.config.settings import Settings
from tests.authority import Authority, put, text_of


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """A certificate authority."""
    return Authority(tmp_path)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Paths of a certificate and its key."""
    return tmp_path / "lake.pem", tmp_path / "lake.key"


def read_serial_number(context: ssl.SSLContext, authority: Authority, name: str | None = "localhost") -> int:
    """Perform a handshake in memory. Returns the serial number of the server's certificate."""
    client = ssl.create_default_context(cafile=str(authority.file))
    client.check_hostname = name is not None
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(down, up, server_hostname=name)
    answering = context.wrap_bio(up, down, server_side=True)
    for _ in range(3):
        for side in (asking, answering):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    certificate = asking.getpeercert(binary_form=True)
    assert certificate is not None
    return x509.load_der_x509_certificate(certificate).serial_number


def test_new_certificate_is_used_at_next_handshake(authority: Authority, files: tuple[Path, Path]) -> None:
    """A new pair is used at the next handshake, also for a client that sends no host name, and if the new key is of
    another type.
    """
    first = authority.give(*files, rsa_key=True)
    certificates = CertificateReloader(*files)
    before = read_serial_number(certificates.context, authority)
    second = authority.give(*files)

    assert certificates.reload_if_changed()
    assert before == first
    assert read_serial_number(certificates.context, authority) == second
    assert read_serial_number(certificates.context, authority, name=None) == second
    assert not certificates.reload_if_changed()


@pytest.mark.parametrize("trouble", ["other key", "no PEM", "gone", "over", "not yet", "encrypted"])
def test_unusable_certificate_keeps_the_old_one_in_use(
    authority: Authority, files: tuple[Path, Path], trouble: str
) -> None:
    """If a new pair cannot be used, the old one stays in use, and a metric counts this once. The next valid pair is
    loaded.
    """
    old = authority.give(*files)
    certificates = CertificateReloader(*files)
    refused = RELOADS[("refused",)]
    spoil(authority, files, trouble)

    assert not certificates.reload_if_changed()
    assert not certificates.reload_if_changed()
    assert RELOADS[("refused",)] == refused + 1
    assert read_serial_number(certificates.context, authority) == old
    new = authority.give(*files)
    assert certificates.reload_if_changed()
    assert read_serial_number(certificates.context, authority) == new


@pytest.mark.parametrize("trouble", ["other key", "no PEM", "gone", "over", "encrypted"])
def test_start_with_unacceptable_certificate_is_refused(
    authority: Authority, files: tuple[Path, Path], trouble: str
) -> None:
    """A start with a certificate that no client would accept is refused, with the file, the reason and the remedy."""
    authority.give(*files)
    spoil(authority, files, trouble)

    with pytest.raises(NoCertificate) as refused:
        CertificateReloader(*files)

    assert str(files[0]) in refused.value.message
    assert refused.value.why
    assert refused.value.advice


def test_not_yet_valid_certificate_does_not_prevent_a_start(authority: Authority, files: tuple[Path, Path]) -> None:
    """A certificate that is not valid yet is accepted, because this machine's clock may be wrong."""
    certificate = authority.give(*files, starts=1, ends=2)

    assert CertificateReloader(*files)._pair.starts is not None
    assert certificate


def test_old_versions_of_tls_are_refused(authority: Authority, files: tuple[Path, Path]) -> None:
    """TLS versions before 1.2 are refused, whatever the machine's OpenSSL would accept."""
    authority.give(*files)

    assert CertificateReloader(*files).context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_metric_is_expiry_of_certificate_in_use(authority: Authority, files: tuple[Path, Path]) -> None:
    """The metric is the expiry of the certificate in use."""
    authority.give(*files, ends=10)
    certificates = CertificateReloader(*files)
    first = ENDS[()]
    authority.give(*files, ends=20)
    certificates.reload_if_changed()

    assert ENDS[()] - first == pytest.approx(10 * 86_400, abs=60)


def test_settings_without_files_mean_no_tls() -> None:
    """TLS is used only if both certificate and key are set."""
    assert certificates_of(Settings()) is None
    with pytest.raises(ValueError, match="belong together"):
        TlsSection(certificate="lake.pem")


def spoil(authority: Authority, files: tuple[Path, Path], trouble: str) -> None:
    """Replace a file by content that cannot be used."""
    certificate, key = files
    if trouble == "other key":
        put(key, text_of(ec.generate_private_key(ec.SECP256R1())))
    elif trouble == "no PEM":
        put(certificate, b"\0" * 100)
    elif trouble == "gone":
        key.unlink()
    elif trouble == "over":
        authority.give(*files, starts=-2, ends=-1)
    elif trouble == "not yet":
        authority.give(*files, starts=1, ends=2)
    else:
        put(key, text_of(ec.generate_private_key(ec.SECP256R1()), b"secret"))
