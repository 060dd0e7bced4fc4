# SPDX-License-Identifier: Apache-2.0
"""Service routes at the root: health, metrics, public settings, and the caller's name. Pages are in `pages`.

Must not know resources.
"""

from __future__ import annotations

from limnos.access.authentication import Authenticator
from limnos.http import health
from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.services.identity.issuer import ISSUER
from limnos.services.request.context import Context
from limnos.services.request.multi_catalog_reads import refuse_former
from limnos.services.request.request_scope import RequestScope
from limnos.telemetry import metrics

_METRICS = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")


async def metrics_render(_request: Request, _ctx: Context) -> Response:
    """Return all metrics in Prometheus' text format."""
    return Response(200, metrics.render(), (_METRICS,))


async def configs(_request: Request, ctx: Context) -> Response:
    """Return the settings that clients read before they sign in, under Gravitino's names."""
    services = ctx.services
    body: dict[str, object] = {
        "gravitino.authenticators": _authentication_methods(services.authenticator),
        "gravitino.authorization.enable": services.rules.access_enabled,
        "gravitino.schema.separator": services.defaults.separator,
    }
    if (client := ISSUER.of(services).client) is not None:
        names = {"provider": "oidc", **client._asdict()}
        body |= {f"gravitino.authenticator.oauth.{name}": value for name, value in names.items()}
    if services.rules.access_enabled:
        body["gravitino.authorization.serviceAdmins"] = sorted(services.rules.service_admins)
    return json_response(body)


def _authentication_methods(authenticator: Authenticator) -> list[str]:
    """Return the authentication methods under Gravitino's names; bearer tokens of any issuer are `oauth`."""
    if not authenticator.believes_basic:
        return ["oauth"]
    return ["simple", "oauth"] if authenticator.has_issuer else ["simple"]


async def whoami(_request: Request, ctx: Context) -> Response:
    """Return the caller's user name. A token of an earlier user of that name is refused."""
    await refuse_former(ctx)
    return json_response({"user": await ctx.read(RequestScope(), lambda request_view: request_view.user)})


ROUTES: tuple[Route[Handler], ...] = (
    Route(method="GET", path="/health", handler=health.health, operation="health"),
    Route(method="GET", path="/health.html", handler=health.health, operation="health-html"),
    Route(method="GET", path="/health/live", handler=health.live, operation="health-live"),
    Route(method="GET", path="/health/ready", handler=health.ready, operation="health-ready"),
    Route(method="GET", path="/metrics", handler=metrics_render, operation="metrics"),
    Route(method="GET", path="/configs", handler=configs, operation="configs"),
    Route(method="GET", path="/api/limnos/v1/whoami", handler=whoami, operation="whoami"),
)
ANONYMOUS = frozenset(route.operation for route in ROUTES) - {"whoami"}
