"""What lies at the root: a first page, health, metrics, the settings that everyone may know; and who the caller is.

May import `services`, `access`, `telemetry` and the shared modules of `limnos.http`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos import __version__
from limnos.http import health
from limnos.http.response import Response, json_response
from limnos.http.routing import Route
from limnos.services.scene import Scope
from limnos.telemetry import metrics

if TYPE_CHECKING:
    from limnos.access.authentication import Authenticator
    from limnos.http.application import Handler
    from limnos.http.request import Request
    from limnos.services.context import Context

_TEXT = (b"content-type", b"text/plain; charset=utf-8")
_METRICS = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")
_FIRST_PAGE = f"""Limnos {__version__}: one governed tree of names for lakehouse data.

  /iceberg        Iceberg REST (Spark, PyIceberg, DuckDB, Trino): the catalog's uri, with warehouse=<catalog>
  /lance          Lance REST Namespace (LanceDB, Lance's Spark connector): the namespace's uri
  /query/service  SQL++ (AsterixDB's query service)
  /api            Gravitino REST (Gravitino's clients): their server uri is this page's
  /api/limnos/v1  what no protocol offers: moves, group members, tokens, explanations
  /configs        settings that clients may know
  /health         UP, or what is down
  /metrics        metrics for Prometheus
""".encode()


async def first_page(_request: Request, _ctx: Context) -> Response:
    """Say what is where."""
    return Response(200, _FIRST_PAGE, (_TEXT,))


async def metrics_render(_request: Request, _ctx: Context) -> Response:
    """Answer every metric in Prometheus' text format."""
    return Response(200, metrics.render(), (_METRICS,))


async def configs(_request: Request, ctx: Context) -> Response:
    """Answer the settings that clients read before they sign in, under Gravitino's names."""
    services = ctx.services
    told: dict[str, object] = {
        "gravitino.authenticators": _authenticators(services.authenticator),
        "gravitino.authorization.enable": services.rules.access_enabled,
        "gravitino.schema.separator": services.defaults.separator,
    }
    if services.issuer.client is not None:
        names = {"provider": "oidc", **services.issuer.client._asdict()}
        told |= {f"gravitino.authenticator.oauth.{name}": value for name, value in names.items()}
    if services.rules.access_enabled:
        told["gravitino.authorization.serviceAdmins"] = sorted(services.rules.service_admins)
    return json_response(told)


def _authenticators(authenticator: Authenticator) -> list[str]:
    """Name the ways to sign in in Gravitino's words: bearer tokens, of whomever, are `oauth`."""
    if not authenticator.believes_basic:
        return ["oauth"]
    return ["simple", "oauth"] if authenticator.has_issuer else ["simple"]


async def whoami(_request: Request, ctx: Context) -> Response:
    """Answer who the caller is taken for."""
    return json_response({"user": await ctx.read(Scope(), lambda scene: scene.user)})


ROUTES: tuple[Route[Handler], ...] = (
    Route("GET", "/", first_page, "first-page"),
    Route("GET", "/health", health.health, "health"),
    Route("GET", "/health.html", health.health, "health-html"),
    Route("GET", "/health/live", health.live, "health-live"),
    Route("GET", "/health/ready", health.ready, "health-ready"),
    Route("GET", "/metrics", metrics_render, "metrics"),
    Route("GET", "/configs", configs, "configs"),
    Route("GET", "/api/limnos/v1/whoami", whoami, "whoami"),
)
ANONYMOUS = frozenset(route.operation for route in ROUTES) - {"whoami"}
