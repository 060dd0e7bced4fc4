"""TLS certificates of a server: which ones it refuses at the start, and how a running server loads changed files."""

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
    """An authority."""
    return Authority(tmp_path)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """The paths of a certificate and its key."""
    return tmp_path / "lake.pem", tmp_path / "lake.key"


def shown(context: ssl.SSLContext, authority: Authority, name: str | None = "localhost") -> int:
    """Shake hands in memory, and return the serial number of what the server showed."""
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
    found = asking.getpeercert(binary_form=True)
    assert found is not None
    return x509.load_der_x509_certificate(found).serial_number


def test_a_new_pair_is_shown_at_the_next_handshake(authority: Authority, files: tuple[Path, Path]) -> None:
    """Also to a client that names no host, and when the new key is of another kind than the old one."""
    first = authority.give(*files, rsa_key=True)
    certificates = CertificateReloader(*files)
    before = shown(certificates.context, authority)
    second = authority.give(*files)

    assert certificates.reload_if_changed()
    assert before == first
    assert shown(certificates.context, authority) == second
    assert shown(certificates.context, authority, name=None) == second
    assert not certificates.reload_if_changed()


@pytest.mark.parametrize("trouble", ["other key", "no PEM", "gone", "over", "not yet", "encrypted"])
def test_a_pair_that_cannot_be_used_leaves_the_old_one(
    authority: Authority, files: tuple[Path, Path], trouble: str
) -> None:
    """It is counted once, not at each look; and the next good pair is taken."""
    old = authority.give(*files)
    certificates = CertificateReloader(*files)
    refused = RELOADS[("refused",)]
    spoil(authority, files, trouble)

    assert not certificates.reload_if_changed()
    assert not certificates.reload_if_changed()
    assert RELOADS[("refused",)] == refused + 1
    assert shown(certificates.context, authority) == old
    new = authority.give(*files)
    assert certificates.reload_if_changed()
    assert shown(certificates.context, authority) == new


@pytest.mark.parametrize("trouble", ["other key", "no PEM", "gone", "over", "encrypted"])
def test_a_server_does_not_start_with_what_no_client_would_take(
    authority: Authority, files: tuple[Path, Path], trouble: str
) -> None:
    """It says which file, why, and what to do."""
    authority.give(*files)
    spoil(authority, files, trouble)

    with pytest.raises(NoCertificate) as refused:
        CertificateReloader(*files)

    assert str(files[0]) in refused.value.message
    assert refused.value.why
    assert refused.value.advice


def test_a_certificate_that_does_not_count_yet_is_no_reason_to_stay_away(
    authority: Authority, files: tuple[Path, Path]
) -> None:
    """This machine's clock may be the wrong one."""
    given = authority.give(*files, starts=1, ends=2)

    assert CertificateReloader(*files)._pair.starts is not None
    assert given


def test_old_versions_of_tls_are_refused(authority: Authority, files: tuple[Path, Path]) -> None:
    """1.2 is the least, whatever the machine's OpenSSL would do."""
    authority.give(*files)

    assert CertificateReloader(*files).context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_the_end_is_told(authority: Authority, files: tuple[Path, Path]) -> None:
    """The metric is the end of the certificate in use."""
    authority.give(*files, ends=10)
    certificates = CertificateReloader(*files)
    first = ENDS[()]
    authority.give(*files, ends=20)
    certificates.reload_if_changed()

    assert ENDS[()] - first == pytest.approx(10 * 86_400, abs=60)


def test_settings_without_files_mean_no_tls() -> None:
    """Only who names both speaks TLS."""
    assert certificates_of(Settings()) is None
    with pytest.raises(ValueError, match="belong together"):
        TlsSection(certificate="lake.pem")


def spoil(authority: Authority, files: tuple[Path, Path], trouble: str) -> None:
    """Put something there that cannot be used."""
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
