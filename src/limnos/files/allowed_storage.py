# SPDX-License-Identifier: Apache-2.0
"""The storage that the server allows: roots below which catalogs may have files, and object stores that it connects to.

Pure. The server's settings decide; a catalog's properties come from its creator and can only narrow the allowed
locations. The directory of the server's own data is always forbidden, except the warehouse in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from limnos.files.locations import LOCAL, OBJECT_STORES, is_within, normalise, parse
from limnos.model.errors import BadRequest, OutsideRoots, StorageMisconfigured
from limnos.model.sealed_secrets import keys_of

ENDPOINTS: Final = (
    "s3.endpoint",
    "s3-endpoint",
    "gcs.service.host",
    "gcs-endpoint",
    "adls.endpoint",
    "azure-storage-endpoint",
    "oss.endpoint",
    "oss-endpoint",
    "s3.token-service-endpoint",
    "s3-token-service-endpoint",
    "gcs.token-service-endpoint",
)
"""Catalog properties that name the URL of an object store or of its token service, as Iceberg and Gravitino call them.

"""
HOSTS: Final = ("adls.account-host",)
"""Catalog properties that name a host without a scheme; the server connects to it over TLS."""
STORAGE: Final = "storage"
"""Catalog property that names a storage of the server's settings."""
_REGIONS: Final = ("s3.region", "client.region", "s3-region")

_PUBLIC: Final = re.compile(
    r"(?:[a-z0-9.-]+\.)?s3(?:-fips|-accelerate)?(?:\.dualstack)?(?:[.-][a-z]{2}(?:-[a-z]+)+-\d)?\.amazonaws\.com(?:\.cn)?"
    r"|sts(?:-fips)?(?:\.[a-z]{2}(?:-[a-z]+)+-\d)?\.amazonaws\.com(?:\.cn)?"
    r"|(?:[a-z0-9-]+\.)?storage\.googleapis\.com"
    r"|[a-z0-9]+\.(?:blob|dfs)\.core\.windows\.net"
    r"|(?:[a-z0-9-]+\.)?oss-[a-z0-9-]+\.aliyuncs\.com"
    r"|[a-z0-9]+(?:\.eu)?\.r2\.cloudflarestorage\.com"
)
"""Hosts of the public clouds' object stores.

The pattern is narrow: some names below these domains lead into private networks.
"""
_HOST: Final = re.compile(r"[A-Za-z0-9.-]+(?::[0-9]{1,5})?")
_SCHEME_ALONE: Final = re.compile("([a-z0-9]+)://")


class AllowedStorage(NamedTuple):
    """The roots and endpoints that the settings allow.

    `roots` are locations or whole schemes (`s3://` allows every bucket), `endpoints` are origins. `own_directories` are
    the server's own directories, and `open_within` are allowed locations in them.
    """

    roots: tuple[str, ...]
    endpoints: tuple[str, ...] = ()
    own_directories: tuple[str, ...] = ()
    open_within: tuple[str, ...] = ()

    def narrow_roots(self, roots: Sequence[str]) -> tuple[str, ...]:
        """Return the allowed parts of a catalog's roots, in normal form: each root, or the allowed roots below it."""
        names = []
        for root in roots:
            if self.covers(root):
                names.append(root)
                continue
            names += [own for own in self.roots if not _SCHEME_ALONE.fullmatch(own) and is_within(own, [root])]
        return tuple(dict.fromkeys(names))

    def covers(self, location: str) -> bool:
        """Return whether a location is below an allowed root and outside of the server's own directories."""
        is_within_root = any(_covers(root, location) for root in self.roots)
        return is_within_root and (
            not is_within(location, self.own_directories) or is_within(location, self.open_within)
        )

    def holds_server_files(self, location: str) -> bool:
        """Return whether a location contains one of the server's own directories, and is not an allowed location in
        them.

        A table at such a location would own the server's files, and a purge would delete them.
        """
        return any(is_within(directory, [location]) for directory in self.own_directories) and not is_within(
            location, self.open_within
        )

    def check_root(self, location: str) -> None:
        """Check that a location is allowed.

        Raises OutsideRoots otherwise, BadRequest for a malformed location. If a command-line flag can allow the
        location, the message contains it.
        """
        if self.covers(location):
            return
        if is_within(location, self.own_directories):
            raise OutsideRoots(
                f"Location {location} is in the server's own directory, where only its warehouse may have tables:"
                " choose another",
                location=location,
            )
        normal_location = normalise(location)
        raise OutsideRoots(
            f"Location {location} is not below a root that this server allows: choose another, or ask the server's"
            f" operator to start it with --allow-root {normal_location} (setting storage.allowed_roots)",
            location=location,
        )

    def check_endpoints(self, properties: Mapping[str, str]) -> None:
        """Check that a catalog's properties name only allowed object stores.

        Raises BadRequest for a forbidden endpoint, with a message that contains the command-line flag to allow it, and
        for a malformed region.
        """
        for name in (*ENDPOINTS, *HOSTS):
            endpoint = properties.get(name)
            if endpoint and name in HOSTS and _HOST.fullmatch(endpoint):
                endpoint = f"https://{endpoint}"
            if endpoint and not self._allows(endpoint):
                raise BadRequest(
                    f"Property '{name}' is {endpoint[:200]!r}, an object store that this server does not connect to:"
                    " use a public one, or ask the server's operator to start it with --allow-endpoint"
                    f" {_origin(endpoint) or 'URL'} (setting storage.allowed_endpoints)"
                )
        for name in _REGIONS:
            region = properties.get(name)
            if region and not re.fullmatch("[A-Za-z0-9-]{1,63}", region):
                raise BadRequest(
                    f"Property '{name}' is {region[:200]!r}, which is not a region: write one such as us-east-1"
                )

    def check_use(self, properties: Mapping[str, str]) -> None:
        """Check a catalog's properties before its store is used.

        Raises StorageMisconfigured if a property cannot be decrypted or the named storage is not configured, BadRequest
        as `check_endpoints` does.
        """
        check_usable(properties)
        self.check_endpoints(properties)

    def _allows(self, endpoint: str) -> bool:
        origin = _origin(endpoint)
        if origin is None:
            return False
        if origin in [_origin(each) for each in self.endpoints]:
            return True
        parts = urlsplit(origin)
        return (
            parts.scheme == "https"
            and parts.port in (None, 443)
            and _PUBLIC.fullmatch(parts.hostname or "") is not None
        )


def check_usable(properties: Mapping[str, str]) -> None:
    """Check that the server can still use a catalog's properties.

    Raises StorageMisconfigured if a property is encrypted with a key that the server does not have, or names a named
    storage that is not configured.
    """
    for name, value in properties.items():
        missing_key_names = sorted(keys_of(value))
        if missing_key_names:
            raise StorageMisconfigured(
                f"Property '{name}' of the catalog is sealed under key {missing_key_names[0]}, which this server does"
                " not have: the operator adds that key to its key file ('limnos server check' names the file), or the"
                " catalog's owner sets the property again"
            )
    if STORAGE in properties:
        raise StorageMisconfigured(
            f"The catalog names storage '{properties[STORAGE]}', which the settings of this server do not define: the"
            f" operator adds [storage.{properties[STORAGE]}], or the catalog's owner names another"
        )


def allow_everything() -> AllowedStorage:
    """Return settings that allow every location, for tests and for tools of the server's operator."""
    return AllowedStorage(("file:///", *(f"{scheme}://" for scheme in dict.fromkeys(OBJECT_STORES.values()))))


def root_of(text: str) -> str:
    """Return the normal form of an allowed root; a scheme without a bucket (`s3a://`) allows all buckets.

    Raises BadRequest for a malformed location.
    """
    alone = _SCHEME_ALONE.fullmatch(text)
    if alone is not None and alone[1] in OBJECT_STORES:
        return f"{OBJECT_STORES[alone[1]]}://"
    return normalise(text)


def _covers(root: str, location: str) -> bool:
    alone = _SCHEME_ALONE.fullmatch(root)
    if alone is None:
        return is_within(location, [root])
    try:
        scheme = parse(location).scheme
    except BadRequest:
        return False
    return scheme != LOCAL and scheme == alone[1]


def _origin(endpoint: str) -> str | None:
    """Return an endpoint's origin (scheme, host and port) in normal form; None if it is not a URL of only these."""
    try:
        parts = urlsplit(endpoint.strip().rstrip("/"))
        port = parts.port
    except ValueError:
        return None
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or parts.username is not None
        or parts.query
        or parts.fragment
    ):
        return None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    default = 443 if parts.scheme == "https" else 80
    return f"{parts.scheme}://{host}" if port in (None, default) else f"{parts.scheme}://{host}:{port}"
