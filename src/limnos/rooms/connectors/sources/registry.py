# SPDX-License-Identifier: Apache-2.0
"""Selects the connector for a provider and checks the catalog's properties for it.

The only module that knows the names of providers. Must not know requests. Opening a source does not connect: the first
call does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import sqlalchemy as sa

from limnos.model.errors import BadRequest, UnsupportedOperation
from limnos.model.extras import missing_part
from limnos.model.kinds import (
    FURTHER_PROVIDER,
    HIVE_PROVIDER,
    KAFKA_PROVIDER,
    MYSQL_PROVIDER,
    POSTGRESQL_PROVIDER,
    REST_PROVIDER,
)
from limnos.rooms.connectors.sources.iceberg_rest import RestSource
from limnos.rooms.connectors.sources.kafka_settings import KafkaSettings, kafka_settings
from limnos.rooms.connectors.sources.postgresql import PostgresqlSource
from limnos.rooms.connectors.sources.rest_session import RestEndpoint, RestSession
from limnos.sources.connectors.addresses import (
    DatabaseUrl,
    SourceAddress,
    database_url,
    http_url,
    metastore_addresses,
    require_allowed,
)
from limnos.sources.connectors.capabilities import BaseCatalog
from limnos.sources.connectors.further import further_connector
from limnos.sources.connectors.opening import SourceLimits
from limnos.sources.connectors.rest_terms import NEVER, TO_READERS, TO_WRITERS, VENDED

CONNECTIONS_MAX: Final = 4
URL: Final = "jdbc-url"
DATABASE: Final = "jdbc-database"
USER: Final = "jdbc-user"
PASSWORD: Final = "jdbc-password"  # noqa: S105 - the name of a property
URI: Final = "uri"
WAREHOUSE: Final = "warehouse"
TOKEN: Final = "token"  # noqa: S105 - the name of a property
CREDENTIAL: Final = "credential"
TOKEN_URI: Final = "oauth2-server-uri"  # noqa: S105 - the name of a property
METASTORES: Final = "metastore.uris"
SCOPE: Final = "scope"
_MODES: Final = ("disable", "allow", "prefer", "require")
"""TLS modes that need no files of this machine."""
SSL_MODE: Final = "sslMode"
_MYSQL_TLS: Final[Mapping[str, dict[str, object]]] = {
    "DISABLED": {"ssl_disabled": True},
    "PREFERRED": {},
    "REQUIRED": {"ssl": {"check_hostname": False, "verify_mode": "none"}},
}
"""TLS modes as arguments of MySQL's driver. The default uses TLS if the server offers it."""


def _postgresql(properties: Mapping[str, str], limits: SourceLimits) -> PostgresqlSource:
    result, database = _check_postgresql(properties, limits)
    late_ms = max(1, int(limits.timeout_s * 1000 * 0.8))
    host = result.address.host.strip("[]")
    url = sa.URL.create(
        "postgresql+psycopg", properties[USER], properties[PASSWORD], host, result.address.port, database
    )
    connect: dict[str, object] = {
        "connect_timeout": max(2, int(limits.timeout_s / 2)),
        "application_name": "limnos",
        "tcp_user_timeout": late_ms,
        "options": f"-c statement_timeout={late_ms} -c lock_timeout={late_ms // 2}",
        "sslmode": result.parameters.get("sslmode", "prefer"),
        # Catalogs must not use the password file, certificates and Kerberos tickets of the server's own account.
        "passfile": "/dev/null",
        "sslcertmode": "disable",
        "gssencmode": "disable",
    }
    return PostgresqlSource(url, connect=connect, connections_max=CONNECTIONS_MAX)


def _check_postgresql(properties: Mapping[str, str], limits: SourceLimits) -> tuple[DatabaseUrl, str]:
    url = database_url(_require_property(properties, URL), scheme="postgresql", port=5432, parameters=("sslmode",))
    if url.parameters.get("sslmode", "prefer") not in _MODES:
        raise BadRequest(f"Parameter sslmode of {URL} must be one of {', '.join(_MODES)}")
    require_allowed(url.address, limits.addresses, label=f"Property {URL}")
    database = properties.get(DATABASE) or url.database
    if not database:
        raise BadRequest(f"Property {DATABASE} is missing: name the database of the catalog")
    for name in (USER, PASSWORD):
        _require_property(properties, name)
    return url, database


def _mysql(properties: Mapping[str, str], limits: SourceLimits) -> BaseCatalog:
    result = _check_mysql(properties, limits)
    try:
        from limnos.rooms.connectors.sources.mysql import MysqlSource  # noqa: PLC0415 - its library comes with the extra
    except ImportError:
        raise _missing_library(MYSQL_PROVIDER, extra="mysql") from None
    late_s, host = limits.timeout_s * 0.8, result.address.host.strip("[]")
    url = sa.URL.create("mysql+pymysql", properties[USER], properties[PASSWORD], host, result.address.port)
    connect: dict[str, object] = {
        "connect_timeout": max(1, int(limits.timeout_s / 2)),
        "read_timeout": max(0.05, late_s),
        "write_timeout": max(0.05, late_s),
        "charset": "utf8mb4",
        "local_infile": False,
        **_MYSQL_TLS[result.parameters.get(SSL_MODE, "PREFERRED")],
    }
    return MysqlSource(url, connect=connect, connections_max=CONNECTIONS_MAX, late_s=late_s)


def _check_mysql(properties: Mapping[str, str], limits: SourceLimits) -> DatabaseUrl:
    url = database_url(_require_property(properties, URL), scheme="mysql", port=3306, parameters=(SSL_MODE,))
    if url.parameters.get(SSL_MODE, "PREFERRED") not in _MYSQL_TLS:
        raise BadRequest(f"Parameter {SSL_MODE} of {URL} must be one of {', '.join(_MYSQL_TLS)}")
    require_allowed(url.address, limits.addresses, label=f"Property {URL}")
    if url.database or properties.get(DATABASE):
        raise BadRequest(
            f"{URL} and {DATABASE} must not name a database: all databases that the user may see are schemas of the"
            " catalog"
        )
    for name in (USER, PASSWORD):
        _require_property(properties, name)
    return url


def _kafka(properties: Mapping[str, str], limits: SourceLimits) -> BaseCatalog:
    settings = _check_kafka(properties, limits)
    try:
        from limnos.rooms.connectors.sources.kafka import KafkaSource  # noqa: PLC0415 - its library comes with the extra
    except ImportError:
        raise _missing_library(KAFKA_PROVIDER) from None
    return KafkaSource(settings, allowed=limits.addresses, timeout_s=limits.timeout_s)


def _check_kafka(properties: Mapping[str, str], limits: SourceLimits) -> KafkaSettings:
    return kafka_settings(properties, allowed=limits.addresses)


def _missing_library(provider: str, *, extra: str = "") -> UnsupportedOperation:
    return UnsupportedOperation(missing_part(f"Catalogs of provider {provider} need", (extra or provider,)))


def _hive(properties: Mapping[str, str], limits: SourceLimits) -> BaseCatalog:
    addresses = _check_hive(properties, limits)
    try:  # the library of the module comes with the extra
        from limnos.rooms.connectors.sources.metastore import MetastoreSource  # noqa: PLC0415
    except ImportError:
        raise _missing_library(HIVE_PROVIDER) from None
    return MetastoreSource(addresses, timeout_s=limits.timeout_s)


def _check_hive(properties: Mapping[str, str], limits: SourceLimits) -> tuple[SourceAddress, ...]:
    for name, value in properties.items():
        if name.startswith("kerberos.") or (name == "impersonation-enable" and value.lower() != "false"):
            raise BadRequest(f"Property {name} is not supported: the server connects to a metastore without Kerberos")
    addresses = metastore_addresses(properties.get(METASTORES) or "", name=METASTORES)
    for each in addresses:
        require_allowed(each, limits.addresses, label=f"Property {METASTORES}")
    return addresses


def _require_property(properties: Mapping[str, str], name: str) -> str:
    value = properties.get(name)
    if not value or "\0" in value:
        raise BadRequest(f"Property {name} is missing: a catalog of this provider needs {URL}, {USER} and {PASSWORD}")
    return value


def _rest(properties: Mapping[str, str], limits: SourceLimits) -> RestSource:
    place = _check_rest(properties, limits)
    return RestSource(RestSession(place, late_s=limits.timeout_s * 0.8, connections_max=CONNECTIONS_MAX))


def _check_rest(properties: Mapping[str, str], limits: SourceLimits) -> RestEndpoint:
    text = f"a catalog of this provider needs {URI}, and mostly {WAREHOUSE} and {TOKEN}"
    for name in (URI, WAREHOUSE, TOKEN, CREDENTIAL, TOKEN_URI, SCOPE):
        value = properties.get(name)
        if (value is None and name == URI) or value == "" or (value is not None and not value.isprintable()):
            raise BadRequest(f"Property {name} is missing or contains non-printing characters: {text}")
    url = http_url(properties[URI], name=URI)
    require_allowed(url.address, limits.addresses, label=f"Property {URI}")
    if TOKEN in properties and CREDENTIAL in properties:
        raise BadRequest(f"Properties {TOKEN} and {CREDENTIAL} exclude each other: leave one out")
    if not properties.get(TOKEN, "").isascii():
        raise BadRequest(f"Property {TOKEN} has characters that are not allowed in tokens: check it")
    tokens = http_url(properties.get(TOKEN_URI, f"{url.url}/v1/oauth/tokens"), name=TOKEN_URI)
    require_allowed(tokens.address, limits.addresses, label=f"Property {TOKEN_URI}")
    if properties.get(VENDED, NEVER) not in (NEVER, TO_WRITERS, TO_READERS):
        raise BadRequest(f"Property {VENDED} must be one of {NEVER}, {TO_WRITERS}, {TO_READERS}")
    return RestEndpoint(
        uri=url.url.removesuffix("/v1"),
        warehouse=properties.get(WAREHOUSE),
        token=properties.get(TOKEN),
        credential=properties.get(CREDENTIAL),
        token_uri=tokens.url,
        scope=properties.get(SCOPE, "catalog"),
    )


_OPENED: Final[Mapping[str, Callable[[Mapping[str, str], SourceLimits], BaseCatalog]]] = {
    POSTGRESQL_PROVIDER: _postgresql,
    MYSQL_PROVIDER: _mysql,
    KAFKA_PROVIDER: _kafka,
    REST_PROVIDER: _rest,
    HIVE_PROVIDER: _hive,
}
_CHECKED: Final[Mapping[str, Callable[[Mapping[str, str], SourceLimits], object]]] = {
    POSTGRESQL_PROVIDER: _check_postgresql,
    MYSQL_PROVIDER: _check_mysql,
    KAFKA_PROVIDER: _check_kafka,
    REST_PROVIDER: _check_rest,
    HIVE_PROVIDER: _check_hive,
}


def check_source(provider: str, properties: Mapping[str, str], *, limits: SourceLimits) -> None:
    """Raise BadRequest for properties that are invalid, or name a host to which the server may not connect."""
    if provider.startswith(FURTHER_PROVIDER):
        further_connector(provider).check_properties(properties, addresses=limits.addresses)
    else:
        _CHECKED[provider](properties, limits)


def open_source(provider: str, properties: Mapping[str, str], *, limits: SourceLimits) -> BaseCatalog:
    """Return the connector of a catalog, without connecting.

    Raises BadRequest for invalid properties, UnsupportedOperation if the connector's library is not installed.
    """
    if provider.startswith(FURTHER_PROVIDER):
        connector = further_connector(provider)
        connector.check_properties(properties, addresses=limits.addresses)
        return connector(properties, timeout_s=limits.timeout_s)
    return _OPENED[provider](properties, limits)
