# SPDX-License-Identifier: Apache-2.0
"""The server's TLS certificate: read from two files, and reloaded when they change, without closing connections.

Must not know sockets. The listener has one SSL context, and each handshake switches to the context of the newest
certificate. Each certificate has its own context, because a context loaded with keys of two types could present either
certificate.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
from pathlib import Path
from typing import Final, NamedTuple

from cryptography import x509

from limnos.config.settings import Settings
from limnos.model.errors import CannotStart
from limnos.services.request.concurrency.background_loops import BackgroundLoops
from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Counter, Gauge

log = get_logger("limnos.tls")
LOOK_EVERY_S: Final = 1.0
RELOADS = Counter(
    "limnos_tls_reloads_total", "Detected changes of the certificate and key files, by outcome.", ("outcome",)
)
ENDS = Gauge("limnos_tls_certificate_ends_seconds", "Expiry of the certificate in use, in seconds since 1970.")


class NoCertificate(CannotStart):
    """The certificate or key file cannot be used: missing, encrypted, expired, or not a matching pair."""

    code = "certificate"


class CertificatePair(NamedTuple):
    """A certificate and its private key, as an SSL context for handshakes."""

    context: ssl.SSLContext
    starts: dt.datetime
    ends: dt.datetime


def pair_read(certificate: Path, key: Path) -> CertificatePair:
    """Read a certificate, followed by intermediate certificates, and its private key from two PEM files.

    Raises NoCertificate if a file is missing, malformed or encrypted, or if the key does not match.
    """
    try:
        leaf = x509.load_pem_x509_certificates(certificate.read_bytes())[0]
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        context.load_cert_chain(certificate, key, password=_no_password)
    except (OSError, ValueError) as error:  # OpenSSL's errors are OSErrors, too
        raise NoCertificate(
            f"The certificate {certificate} with the key {key} cannot be used",
            why=_failure_reason(error),
            advice=(
                "give a certificate and its private key as PEM files, the key without a password, both readable by the"
                " server's user"
            ),
        ) from error
    return CertificatePair(context, leaf.not_valid_before_utc, leaf.not_valid_after_utc)


def _no_password() -> str:
    raise ValueError("the key is encrypted: use a key without a password")


def _failure_reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        text = (error.reason or "OpenSSL rejects them").lower().replace("_", " ")
        return f"{text}: the key may belong to another certificate"
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}"
    return str(error).partition("\n")[0] or type(error).__name__


def certificates_of(settings: Settings) -> CertificateReloader | None:
    """Return the reloader of the certificate in the settings; None for a server without TLS.

    Raises NoCertificate, also for an expired certificate.
    """
    if settings.tls.certificate is None or settings.tls.key is None:
        return None
    return CertificateReloader(Path(settings.tls.certificate), Path(settings.tls.key))


class CertificateReloader:
    """Loads a certificate, and reloads it if its files change. `context` is the SSL context of the listening sockets.

    The constructor raises NoCertificate, also for an expired certificate.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = (certificate, key)
        self._seen = _stamp(self._files)
        self._pair = pair_read(certificate, key)
        if self._pair.ends <= _utc_now():
            raise NoCertificate(
                f"The certificate {certificate} has expired",
                why=f"it ended at {self._pair.ends:%Y-%m-%d %H:%M} UTC; clients reject it",
                advice=(
                    "replace it and its key, and start again; a running server loads a new certificate without a"
                    " restart"
                ),
            )
        if self._pair.starts > _utc_now():
            log.warning("the certificate is not valid yet", starts=str(self._pair.starts))
        self.context = self._pair.context

        def use_newest(connection: ssl.SSLObject, *_: object) -> None:
            """Switch a handshake to the newest certificate. Called for every handshake, with or without SNI."""
            connection.context = self._pair.context

        self.context.sni_callback = use_newest
        self._expiry_logged = False
        self._use()

    def _use(self) -> None:
        ENDS[()] = self._pair.ends.timestamp()
        self._expiry_logged = False
        log.info("certificate in use", ends=str(self._pair.ends), file=str(self._files[0]))

    def reload_if_changed(self) -> bool:
        """Reload the certificate and key files if they have changed.

        Returns whether a new certificate is in use. If the new files are invalid, the old certificate stays in use.
        """
        now = _stamp(self._files)
        if now == self._seen:
            return False
        try:
            pair = pair_read(*self._files)
            _require_current(pair)
        except NoCertificate as error:
            self._seen = now
            RELOADS[("refused",)] += 1
            log.warning(
                "a new certificate cannot be used; the old one stays in use", error=error.message, why=error.why
            )
            return False
        self._seen, self._pair = now, pair
        RELOADS[("done",)] += 1
        self._use()
        return True

    async def run(self, loops: BackgroundLoops, *, every_s: float = LOOK_EVERY_S) -> None:
        """Check the files every `every_s` seconds. An unresponsive disk blocks only this task."""
        await loops.add("certificate", every_s=every_s).run(self._check)

    async def _check(self) -> None:
        await asyncio.to_thread(self.reload_if_changed)
        if self._pair.ends <= _utc_now() and not self._expiry_logged:
            self._expiry_logged = True
            log.error("the certificate has expired: clients reject it", ended=str(self._pair.ends))


def _require_current(pair: CertificatePair) -> None:
    if not pair.starts <= _utc_now() < pair.ends:
        raise NoCertificate(
            "The new certificate is not valid at present",
            why=f"it is valid from {pair.starts} to {pair.ends}",
            advice="get a valid one from the certificate authority, or check this machine's clock",
        )


def _utc_now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


def _stamp(files: tuple[Path, Path]) -> tuple[object, ...]:
    """Return the inode, size and modification time of each file, or the error number, to detect changes."""
    results: list[object] = []
    for file in files:
        try:
            result = file.stat()
        except OSError as error:
            results.append(error.errno)
        else:
            results.append((result.st_ino, result.st_size, result.st_mtime_ns))
    return tuple(results)
