"""What the server allows: the roots below which catalogs may have files, and the object stores that it talks to.

May import `model` and this room's locations. Pure: whoever runs the server decides, by settings; a catalog's properties are
its makers' words and only narrow it. The directory of the server's own data is out of bounds, except the warehouse in it,
whatever else is allowed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from limnos.files.locations import LOCAL, OBJECT_STORES, is_within, normalise, parse
from limnos.model.errors import BadRequest, OutsideRoots, StorageMisconfigured
from limnos.model.sealed_secrets import keys_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ENDPOINTS: Final = (
    "s3.endpoint", "s3-endpoint", "gcs.service.host", "gcs-endpoint", "adls.endpoint", "azure-storage-endpoint",
    "oss.endpoint", "oss-endpoint", "s3.token-service-endpoint", "s3-token-service-endpoint",
    "gcs.token-service-endpoint",
)  # fmt: skip
"""Properties of catalogs that name an object store's address, or that of who gives out keys to it, as Iceberg and Gravitino call them."""
HOSTS: Final = ("adls.account-host",)
"""Those that name a host alone, which is asked over TLS."""
STORAGE: Final = "storage"
"""Of a catalog: which storage of the server's settings says how its files are reached."""
_REGIONS: Final = ("s3.region", "client.region", "s3-region")

_PUBLIC: Final = re.compile(
    r"(?:[a-z0-9.-]+\.)?s3(?:-fips|-accelerate)?(?:\.dualstack)?(?:[.-][a-z]{2}(?:-[a-z]+)+-\d)?\.amazonaws\.com(?:\.cn)?"
    r"|sts(?:-fips)?(?:\.[a-z]{2}(?:-[a-z]+)+-\d)?\.amazonaws\.com(?:\.cn)?"
    r"|(?:[a-z0-9-]+\.)?storage\.googleapis\.com"
    r"|[a-z0-9]+\.(?:blob|dfs)\.core\.windows\.net"
    r"|(?:[a-z0-9-]+\.)?oss-[a-z0-9-]+\.aliyuncs\.com"
    r"|[a-z0-9]+(?:\.eu)?\.r2\.cloudflarestorage\.com"
)
"""Object stores of the public clouds; narrow, as some names below these domains lead into private networks."""
_HOST: Final = re.compile(r"[A-Za-z0-9.-]+(?::[0-9]{1,5})?")
_SCHEME_ALONE: Final = re.compile("([a-z0-9]+)://")


class AllowedStorage(NamedTuple):
    """What settings allow: roots (`s3://` alone is every bucket), origins of endpoints, and directories out of bounds.

    `kept` are the server's own directories, `open_within` the places in them that are open all the same.
    """

    roots: tuple[str, ...]
    endpoints: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    open_within: tuple[str, ...] = ()

    def narrowed(self, roots: Sequence[str]) -> tuple[str, ...]:
        """Return what of a catalog's roots is allowed, in normal form; the deeper one where both cover."""
        found = []
        for root in roots:
            if self.covers(root):
                found.append(root)
                continue
            found += [own for own in self.roots if not _SCHEME_ALONE.fullmatch(own) and is_within(own, [root])]
        return tuple(dict.fromkeys(found))

    def covers(self, location: str) -> bool:
        """Say whether a location is allowed."""
        within = any(_covers(root, location) for root in self.roots)
        return within and (not is_within(location, self.kept) or is_within(location, self.open_within))

    def holds_server_files(self, location: str) -> bool:
        """Say whether the server's own directories lie in a location: a table there would have them as its files."""
        return any(is_within(own, [location]) for own in self.kept) and not is_within(location, self.open_within)

    def check_root(self, location: str) -> None:
        """Raise OutsideRoots, naming the flag, for a location that the server does not allow."""
        if is_within(location, self.kept) and not self.covers(location):
            raise OutsideRoots(
                f"Location {location} is in the server's own directory, where only its warehouse is open: choose another",
                location=location,
            )
        if not self.covers(location):
            normal = normalise(location)
            raise OutsideRoots(
                f"Location {location} is not below a root that this server allows: choose another, or ask whoever runs "
                f"the server to start it with --allow-root {normal} (setting storage.allowed_roots)",
                location=location,
            )

    def check_endpoints(self, properties: Mapping[str, str]) -> None:
        """Raise BadRequest, naming the flag, for properties that would make the server talk to somebody else."""
        for name in (*ENDPOINTS, *HOSTS):
            endpoint = properties.get(name)
            if endpoint and name in HOSTS and _HOST.fullmatch(endpoint):
                endpoint = f"https://{endpoint}"
            if endpoint and not self._allows(endpoint):
                raise BadRequest(
                    f"Property '{name}' is {endpoint[:200]!r}, an object store that this server does not talk to: use a public one, "
                    f"or ask whoever runs the server to start it with --allow-endpoint {_origin(endpoint) or 'URL'} "
                    "(setting storage.allowed_endpoints)"
                )
        for name in _REGIONS:
            region = properties.get(name)
            if region and not re.fullmatch("[A-Za-z0-9-]{1,63}", region):
                raise BadRequest(
                    f"Property '{name}' is {region[:200]!r}, which is no region: write one such as us-east-1"
                )

    def check_use(self, properties: Mapping[str, str]) -> None:
        """Refuse, before a store is reached, what `check_endpoints` does. Raises StorageMisconfigured for properties that are not what was meant any more."""
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
    """Refuse properties that are not what their makers meant any more. Raises StorageMisconfigured, naming key or storage."""
    for name, value in properties.items():
        lacking = sorted(keys_of(value))
        if lacking:
            raise StorageMisconfigured(
                f"Property '{name}' of the catalog is sealed under key {lacking[0]}, which this server does not have: whoever runs it puts that "
                "key into its file of keys ('limnos server check' names the file), or the catalog's owner sets the property anew"
            )
    if STORAGE in properties:
        raise StorageMisconfigured(
            f"The catalog names storage '{properties[STORAGE]}', which the settings of this server do not have: whoever runs it adds "
            f"[storage.{properties[STORAGE]}], or the catalog's owner names another"
        )


def allow_everything() -> AllowedStorage:
    """Allow whatever there is: for tests, and for tools of whoever runs the server."""
    return AllowedStorage(("file:///", *(f"{scheme}://" for scheme in dict.fromkeys(OBJECT_STORES.values()))))


def root_of(text: str) -> str:
    """Return the normal form of an allowed root; a scheme alone is every bucket of it. Raises BadRequest."""
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
    """Return scheme, host and port of an endpoint in one spelling; None when it is not a plain address."""
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
