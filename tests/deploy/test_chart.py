# SPDX-License-Identifier: Apache-2.0
"""The Helm chart: Helm lints and renders it, and the result fits the product."""

from __future__ import annotations

import copy
import tomllib
from typing import cast

import pytest
import yaml
from helm_python import HelmError
from helm_python.chart import Chart, lint

from tests.deploy.named_things import DEPLOY, ROOT, Json, addresses, settings_of

CHART = DEPLOY / "helm" / "limnos"
VALUES: Json = {
    "database": {"secret": "limnos-database"},
    "warehouse": "s3://lake-tables/main",
    "hosts": ["lake.example.com", "lake.internal"],
}
"""The required values."""
EVERYTHING: Json = {
    **VALUES,
    "ingress": {"enabled": True, "className": "nginx", "tlsSecret": "lake-tls"},
    "metrics": {"serviceMonitor": True},
    "environment": {"LIMNOS__OIDC__ISSUER": "https://id.example.com", "LIMNOS__OIDC__AUDIENCES": "limnos"},
    "environmentSecrets": ["aws"],
    "nodeSelector": {"pool": "lake"},
    "tolerations": [{"key": "lake", "operator": "Exists"}],
    "replicas": 3,
    "drainSeconds": 30,
}


def rendered(values: Json) -> dict[str, Json]:
    """Return the documents that Helm renders, by kind."""
    files = Chart.load(str(CHART)).render(values, name="lake", namespace="data")
    documents = [yaml.safe_load(text) for path, text in files.items() if path.endswith(".yaml")]
    return {document["kind"]: document for document in documents if document}


def at(document: object, *path: str | int) -> object:
    """Return the value at a path of a document."""
    for step in path:
        document = cast("dict[str | int, object]", document)[step]
    return document


def pods() -> list[Json]:
    """Return the pods of a chart with all options: nodes and the migration."""
    documents = rendered(EVERYTHING)
    return [cast("Json", at(documents[kind], "spec", "template", "spec")) for kind in ("Deployment", "Job")]


def environment(pod: Json) -> dict[str, str]:
    """Return the variables of a pod; a secret is replaced by a URL of PostgreSQL."""
    variables = cast("list[dict[str, str]]", at(pod, "containers", 0, "env"))
    return {each["name"]: each.get("value", "postgresql://limnos@db.example.com/limnos") for each in variables}


@pytest.mark.parametrize("values", [VALUES, EVERYTHING], ids=["least", "everything"])
def test_helm_strict_lint_passes(values: Json) -> None:
    """Helm's own strict lint has no warning and no error."""
    report = lint(str(CHART), values, strict=True)

    assert report["errors"] == []
    assert [each for each in report["messages"] if each["severity"] > 1] == []


@pytest.mark.parametrize(
    "section,key,value",
    [
        ("image", "repository", ""),
        ("database", "secret", ""),
        ("database", "secrets", "x"),
        ("warehouse", None, ""),
        ("warehouse", None, "/srv/x"),
        ("hosts", None, []),
        ("hosts", None, ["https://lake.example.com"]),
        ("replicas", None, 0),
        ("replica", None, 2),
        ("environment", "A", 1),
        ("environment", "LIMNOS__DATABASE__URL", "postgresql://u:secret@h/d"),
        ("drainSeconds", None, 0),
        ("service", "port", 70_000),
    ],
)
def test_invalid_values_are_refused(section: str, key: str | None, value: object) -> None:
    """Missing, misspelled and invalid values are refused before rendering, and so is a secret among the plain
    values.
    """
    values = copy.deepcopy(VALUES)
    if key is None:
        values[section] = value
    else:
        cast("Json", values.setdefault(section, {}))[key] = value

    with pytest.raises(HelmError):
        Chart.load(str(CHART)).validate_schema(values)
    Chart.load(str(CHART)).validate_schema(VALUES)


def test_only_requested_documents_are_rendered() -> None:
    """Only the documents that the values request are rendered."""
    least = {"Deployment", "Job", "PodDisruptionBudget", "Service", "ServiceAccount"}

    assert set(rendered(VALUES)) == least
    assert set(rendered(EVERYTHING)) == least | {"Ingress", "ServiceMonitor"}
    assert set(rendered({**VALUES, "migrate": {"enabled": False}})) == least - {"Job"}
    assert set(rendered({**VALUES, "serviceAccount": {"name": "mine"}})) == least - {"ServiceAccount"}


def test_image_is_the_one_of_the_release_by_default() -> None:
    """Without values all pods run the image that the Containerfile's command builds; a registry may stand before it."""
    images = {at(pod, "containers", 0, "image") for pod in pods()}
    elsewhere = rendered({**VALUES, "image": {"repository": "registry.example.com/limnos"}})["Deployment"]

    assert images == {"limnos:0.1.0"}
    assert at(elsewhere, "spec", "template", "spec", "containers", 0, "image") == "registry.example.com/limnos:0.1.0"


def test_chart_variables_are_valid_settings() -> None:
    """Every variable is a setting that the server accepts, with the value from the chart's values."""
    for pod in pods():
        settings = settings_of(environment(pod)).settings

        assert settings.access.authentication == "token"
        assert settings.storage.warehouse == "s3://lake-tables/main"
        assert settings.server.hosts[:3] == ("lake.example.com", "lake.internal", "lake-limnos")
        assert settings.server.drain_timeout_s == 30
        assert settings.oidc.issuer == "https://id.example.com"
        assert settings.database.url.reveal() == "postgresql://limnos@db.example.com/limnos"


@pytest.mark.parametrize("port, ending", [(80, ""), (9000, ":9000")])
def test_names_of_the_service_have_its_port(port: int, ending: str) -> None:
    """The server accepts the names of the service at the service's port, which is not the pod's."""
    deployment = rendered({**VALUES, "service": {"port": port}})["Deployment"]
    pod = cast("Json", at(deployment, "spec", "template", "spec"))

    assert settings_of(environment(pod)).settings.server.hosts == (
        "lake.example.com",
        "lake.internal",
        f"lake-limnos{ending}",
        f"lake-limnos.data{ending}",
        f"lake-limnos.data.svc{ending}",
        f"lake-limnos.data.svc.cluster.local{ending}",
    )


def test_pods_run_unprivileged() -> None:
    """Pods run as an unprivileged user, without capabilities or the cluster's token, and write only to their own
    volumes.
    """
    for pod in pods():
        (container,) = cast("list[Json]", pod["containers"])

        assert at(pod, "securityContext", "runAsNonRoot") is True
        assert at(container, "securityContext", "allowPrivilegeEscalation") is False
        assert at(container, "securityContext", "readOnlyRootFilesystem") is True
        assert at(container, "securityContext", "capabilities", "drop") == ["ALL"]
        assert pod["automountServiceAccountToken"] is False
        mounts = {each["name"] for each in cast("list[dict[str, str]]", container["volumeMounts"])}
        assert mounts == {each["name"] for each in cast("list[dict[str, str]]", pod["volumes"])}
        assert at(container, "resources", "limits", "memory")
        assert at(container, "envFrom", 0, "secretRef", "name") == "aws"


def test_probes_request_existing_paths() -> None:
    """Each probe requests an existing path; an unavailable store removes nodes from the service and does not restart
    them.
    """
    container = cast("Json", at(pods()[0], "containers", 0))
    probe_paths = {
        name: at(container, name, "httpGet", "path") for name in ("startupProbe", "livenessProbe", "readinessProbe")
    }

    assert set(probe_paths.values()) <= addresses()
    assert probe_paths["livenessProbe"] == probe_paths["startupProbe"] == "/health/live"
    assert probe_paths["readinessProbe"] == "/health/ready"
    assert cast("int", pods()[0]["terminationGracePeriodSeconds"]) > 30 + 5  # the drain time, and the pause before it


def test_the_migration_is_before_the_nodes() -> None:
    """The migration runs before installs and upgrades, with an existing command, and the same image and store."""
    job = rendered(EVERYTHING)["Job"]
    node, migration = (cast("Json", at(pod, "containers", 0)) for pod in pods())

    assert at(job, "metadata", "annotations", "helm.sh/hook") == "pre-install,pre-upgrade"
    assert (node["args"], migration["args"]) == (["server", "start"], ["server", "migrate"])
    assert node["image"] == migration["image"]
    assert node["env"] == migration["env"]


def test_selectors_match_only_nodes() -> None:
    """Service, disruption budget and monitor select the labels of the nodes' pods, or of the service, and not the
    migration's pod.
    """
    documents = rendered(EVERYTHING)
    labels = cast("dict[str, str]", at(documents["Deployment"], "spec", "template", "metadata", "labels"))
    other = cast("dict[str, str]", at(documents["Job"], "spec", "template", "metadata", "labels"))
    selectors = [at(documents["Service"], "spec", "selector")]
    selectors += [
        at(documents[kind], "spec", "selector", "matchLabels") for kind in ("Deployment", "PodDisruptionBudget")
    ]

    for selector in map(dict, selectors):  # type: ignore[call-overload]
        assert selector.items() <= labels.items()
        assert not selector.items() <= other.items()
    monitored = cast("dict[str, str]", at(documents["ServiceMonitor"], "spec", "selector", "matchLabels"))
    assert monitored.items() <= cast("dict[str, str]", at(documents["Service"], "metadata", "labels")).items()
    assert at(documents["Service"], "spec", "ports", 0, "targetPort") == at(
        pods()[0], "containers", 0, "ports", 0, "name"
    )


def test_ingress_serves_all_paths_except_root_and_metrics() -> None:
    """Every documented path is reachable from outside under each host, except for the root page and the metrics."""
    rules = cast("list[Json]", at(rendered(EVERYTHING)["Ingress"], "spec", "rules"))
    assert [rule["host"] for rule in rules] == VALUES["hosts"]
    for rule in rules:
        prefixes = tuple(f"{each['path']}/" for each in cast("list[dict[str, str]]", at(rule, "http", "paths")))
        closed = {path for path in addresses() if not f"{path}/".startswith(prefixes)}

        assert closed == {"/", "/metrics", "/health.html"}
        assert "/console/".startswith(prefixes)


def test_the_chart_is_of_this_release() -> None:
    """The chart installs the version of the project."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]

    metadata = Chart.load(str(CHART)).metadata
    assert metadata["appVersion"] == version
