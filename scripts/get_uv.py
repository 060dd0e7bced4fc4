# SPDX-License-Identifier: Apache-2.0
"""Fetch the uv wheel from PyPI with the standard library only, for a Python without pip.

Usage: get_uv.py VERSION DIRECTORY. Verifies the SHA-256 of the index and unpacks the binary.
"""

from __future__ import annotations

import hashlib
import io
import platform
import re
import sys
import urllib.request
import zipfile
from pathlib import Path
from urllib.parse import urljoin

INDEX = "https://pypi.org/simple/uv/"
LINK = re.compile(r'href="([^"#]+/([^"/#]+))#sha256=([0-9a-f]{64})"')  # PEP 503: URL, file name, hash


def tags() -> tuple[str, str]:
    """Return the words in the name of this machine's wheel: system and processor."""
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    if sys.platform == "darwin":
        return "macosx", "arm64" if machine == "aarch64" else machine
    return ("manylinux" if platform.libc_ver()[0] == "glibc" else "musllinux"), machine


def wheel_of(index: str, version: str, wheel_tags: tuple[str, str]) -> tuple[str, str]:
    """Return URL and SHA-256 of the wheel with the wanted tags. Raises SystemExit if there is none."""
    for url, name, sha256 in LINK.findall(index):
        if name.startswith(f"uv-{version}-") and name.endswith(".whl") and all(tag in name for tag in wheel_tags):
            return urljoin(INDEX, url), sha256
    message = (
        f"get_uv: PyPI has no uv {version} for {' '.join(wheel_tags)}; install python3-venv or pip, then try again"
    )
    raise SystemExit(message)


def fetch(url: str) -> bytes:
    """Return the bytes at an https URL."""
    with urllib.request.urlopen(url, timeout=120) as answer:
        body: bytes = answer.read()
    return body


def main(version: str, directory: str) -> None:
    """Write the uv binary of that version into the directory."""
    url, sha256 = wheel_of(fetch(INDEX).decode(), version, tags())
    wheel = fetch(url)
    if hashlib.sha256(wheel).hexdigest() != sha256:
        message = f"get_uv: {url} does not have the SHA-256 that the index gives; try again"
        raise SystemExit(message)
    target = Path(directory) / "uv"
    target.write_bytes(zipfile.ZipFile(io.BytesIO(wheel)).read(f"uv-{version}.data/scripts/uv"))
    target.chmod(0o755)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
