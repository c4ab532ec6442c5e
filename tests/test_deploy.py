"""What `deploy/` promises, as far as a machine without a container engine can check it."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.cli.offline import offline_tokens
from gateway.config.load import load_settings
from gateway.config.settings import AuthMode, Settings
from gateway.runtime.tokens import TokenRequest
from gateway.tests.e2e.client import Client
from gateway.tests.served import Served

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
ENVIRONMENTS = ("dev", "staging", "production")
FIRST_TOKEN = "k8s/first-token.yaml"
UNIT = DEPLOY / "systemd/acp-gateway.service"
# Over this an exposed service is called MEDIUM; a service that does without root is under 2.
EXPOSURE_MAX = 2.0
# pip fetches some fifty packages in the slowest of them.
COMMAND_S = 600
Serve = Callable[..., Served]
Needs = Callable[[str], Path]


def settings(environment: str) -> Settings:
    return load_settings(environ={}, file=DEPLOY / f"config/{environment}.yaml").settings


def documents(name: str) -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all((DEPLOY / name).read_text()) if one]


def ran(*words: str | Path, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
    """A command that may fail, with what it said."""
    return subprocess.run(
        words, cwd=cwd, check=False, capture_output=True, text=True, timeout=COMMAND_S
    )


# ---- settings ------------------------------------------------------------------------------------


def test_the_settings_of_each_environment_load_and_are_what_they_claim() -> None:
    dev, staging, production = map(settings, ENVIRONMENTS)
    assert dev.is_loopback
    assert not dev.auth_required
    for one in (staging, production):
        assert one.auth.mode is AuthMode.REQUIRED
        assert one.tls.cert_file is not None or one.auth.behind_tls_proxy
        assert one.journal.sync
        assert not one.journal.salvage
        assert one.outbound_networks
        assert all(network.prefixlen >= 12 for network in one.outbound_networks), "say it narrower"
        assert one.http.public_url
        assert one.http.allowed_hosts


def test_every_setting_that_is_written_has_its_reason_beside_it() -> None:
    for environment in ENVIRONMENTS:
        text = (DEPLOY / f"config/{environment}.yaml").read_text()
        comments = [line for line in text.splitlines() if "#" in line]
        assert len(comments) >= len(text.splitlines()) / 4, environment


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_a_gateway_serves_with_the_settings_of_each_environment(
    serve: Serve, tmp_path: Path, environment: str
) -> None:
    """On free ports of loopback, with its own directory: the flags win over the file."""
    with offline_tokens(tmp_path / "data") as tokens:
        made = tokens.create_token(TokenRequest(scopes=("admin",)))
    served = serve("--config", str(DEPLOY / f"config/{environment}.yaml"))
    with Client(served.url) as client:
        assert client.get("/readyz").status == 200
        demands = settings(environment).auth_required
        assert client.get("/v1/sessions").status == (401 if demands else 200)
        shown = client.call("GET", "/v1/sessions", authorization=f"Bearer {made.token}")
        assert shown.status == 200
    assert served.stop() == 0


# ---- the image -----------------------------------------------------------------------------------


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions in order, continued lines joined, comments left out."""
    text = re.sub(r"\\\n\s*", " ", (DEPLOY / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1].strip()) for line in lines]


def of(kind: str) -> list[str]:
    return [text for name, text in instructions() if name == kind]


def copied() -> list[str]:
    """What is copied from the checkout."""
    sources: list[str] = []
    for text in of("COPY"):
        if not text.startswith("--from="):
            sources += text.split()[:-1]
    return sources


def test_the_image_copies_what_is_there_and_every_package_of_the_distribution() -> None:
    assert of("ADD") == []
    for source in copied():
        assert (ROOT / source).exists(), source
    project = (ROOT / "pyproject.toml").read_text()
    (packages,) = re.findall(r"^packages = (\[.*\])$", project, re.MULTILINE)
    assert {f"{name}/" for name in json.loads(packages)} <= set(copied())


def test_the_builder_is_sent_exactly_what_is_copied() -> None:
    lines = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    let_in = {line.removeprefix("!") for line in lines if line.startswith("!")}
    assert let_in == set(copied())
    assert "*" in lines


def test_the_image_runs_as_a_numbered_user_that_is_not_root() -> None:
    kinds = [name for name, _ in instructions()]
    last = len(kinds) - 1 - kinds[::-1].index("FROM")
    final = instructions()[last:]
    (user,) = [text for name, text in final if name == "USER"]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    assert int(user.partition(":")[0]) >= 10_000
    after = [name for name, _ in final][[name for name, _ in final].index("USER") :]
    assert not {"RUN", "COPY"} & set(after), "nothing is done as root afterwards"
    assert [text for name, text in final if name == "VOLUME"] == ['["/var/lib/acp"]']
    assert of("STOPSIGNAL") == ["SIGTERM"]


def test_the_base_is_one_argument_that_can_be_pinned_by_digest() -> None:
    assert of("ARG") == ["PYTHON_IMAGE=python:3.11-slim"]
    assert {text.split()[0] for text in of("FROM")} == {"${PYTHON_IMAGE}"}
    assert "@sha256:<digest>" in (DEPLOY / "README.md").read_text()


def test_the_images_ports_and_command_are_those_of_the_settings() -> None:
    production = settings("production")
    assert of("EXPOSE") == [f"{production.http.bind.port} {production.grpc.bind.port}"]
    (command,) = of("CMD")
    assert json.loads(command) == [
        "serve", "--config", "/etc/acp/config.yaml", "--data-dir", str(production.data_dir),
    ]  # fmt: skip


def test_the_health_check_tells_a_gateway_that_serves_from_one_that_does_not(
    serve: Serve, free_port: Callable[[], int]
) -> None:
    (check,) = of("HEALTHCHECK")
    words = json.loads(check[check.index("[") :])
    assert words[:2] == ["python", "-c"]
    served = serve()
    for port, status in ((served.http.rpartition(":")[2], 0), (str(free_port()), 1)):
        code = words[2].replace("8080", port)
        asked = ran(sys.executable, "-c", code)
        assert asked.returncode == status, asked.stderr


@pytest.mark.long
def test_the_images_pip_commands_work_in_a_plain_environment(tmp_path: Path) -> None:
    """Everything the image does, but in a folder that holds what is copied and nothing else."""
    source, home = tmp_path / "src", tmp_path / "opt-acp"
    for name in copied():
        target = source / name
        if name.endswith("/"):
            ignored = shutil.ignore_patterns("tests", "__pycache__", ".build", "node_modules")
            shutil.copytree(ROOT / name, target, ignore=ignored)
        else:
            shutil.copy(ROOT / name, target)
    runs = [text for text in of("RUN") if "/opt/acp" in text]
    assert len(runs) == 2
    for text in runs:
        for command in text.split("&&"):
            words = [word.replace("/opt/acp", str(home)) for word in shlex.split(command)]
            if words[0] == "python":
                words[0] = sys.executable
            done = ran(*words, cwd=source)
            assert done.returncode == 0, (words, done.stderr[-2000:])
    acp = home / "bin/acp"
    config = DEPLOY / "config/production.yaml"
    shown = subprocess.run(
        [acp, "serve", "--print-config", "--json", "--config", config],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(shown.stdout)["auth"]["mode"] == "required"
    assert not (home / "bin/pip").exists()


# ---- compose -------------------------------------------------------------------------------------

SERVICE_KEYS = {
    "image", "restart", "read_only", "cap_drop", "security_opt", "tmpfs", "stop_grace_period",
    "logging", "environment", "networks", "depends_on", "healthcheck", "build", "command", "ports",
    "volumes", "configs", "ulimits", "entrypoint",
}  # fmt: skip


def compose() -> dict[str, Any]:
    (found,) = documents("compose.yaml")
    return found


def test_every_service_of_compose_is_hardened_alike() -> None:
    for name, service in compose()["services"].items():
        assert set(service) <= SERVICE_KEYS, name
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert "privileged" not in service
        assert "user" not in service, "the image's own, which is not root"


def test_what_compose_refers_to_is_there() -> None:
    found = compose()
    for name, service in found["services"].items():
        assert set(service.get("networks", [])) <= set(found["networks"]), name
        for volume in service.get("volumes", []):
            assert volume.partition(":")[0] in found["volumes"], name
        for config in service.get("configs", []):
            assert (DEPLOY / found["configs"][config["source"]]["file"]).is_file(), name
        for other in service.get("depends_on", {}):
            assert other in found["services"], name
        if "build" in service:
            context = (DEPLOY / service["build"]["context"]).resolve()
            assert context == ROOT
            assert (context / service["build"]["dockerfile"]).is_file()
    gateway = found["services"]["gateway"]
    assert all(port.startswith("127.0.0.1:") for port in gateway["ports"])


def test_the_first_tokens_can_be_made_before_there_are_any() -> None:
    """Compose reads the whole file for every command: a variable that must be set (`:?`) would stop
    the very command that makes the token."""
    text = (DEPLOY / "compose.yaml").read_text()
    assert "run --rm gateway tokens create" in text
    assert re.findall(r"\$\{\w+:?\?", text) == []


def test_the_gateway_of_compose_may_call_its_network_and_nothing_else() -> None:
    (network,) = compose()["networks"]["components"]["ipam"]["config"]
    assert [str(one) for one in settings("staging").outbound_networks] == [network["subnet"]]


@pytest.fixture
def attached(serve: Serve, tmp_path: Path) -> Iterator[list[dict[str, Any]]]:
    """What a gateway with compose's settings has, once each component runs as compose starts it."""
    with offline_tokens(tmp_path / "data") as tokens:
        admin = tokens.create_token(TokenRequest(scopes=("admin",))).token
        component = tokens.create_token(TokenRequest(scopes=("component",), names=("*",))).token
    served = serve("--config", str(DEPLOY / "config/staging.yaml"))
    started: list[subprocess.Popen[bytes]] = []
    for name, service in compose()["services"].items():
        if name == "gateway":
            continue
        environment = dict(service["environment"])
        assert environment.pop("ACP_ATTACH") == "gateway:8081"
        assert environment.pop("ACP_COMPONENT_TOKEN") == "${COMPONENT_TOKEN}"
        assert environment == {}
        started.append(
            subprocess.Popen(
                [sys.executable, *service["entrypoint"][1:], *service["command"]],
                cwd=tmp_path,  # as in the image: what a component writes is not in the sources
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={
                    "PATH": "/usr/bin",
                    "ACP_ATTACH": served.grpc,
                    "ACP_COMPONENT_TOKEN": component,
                    "ACP_TOKEN": "acp_an_operators_own",
                },
            )
        )
    try:
        for process in started:
            assert process.stdout is not None
            assert json.loads(process.stdout.readline())["ready"] is True
        with Client(served.url) as client:
            listed = client.call("GET", "/v1/components", authorization=f"Bearer {admin}")
        yield listed.json["components"]
    finally:
        for process in started:
            process.terminate()
            process.wait(30)
            assert process.stdout is not None
            process.stdout.close()


def test_the_components_of_compose_attach_with_a_token(attached: list[dict[str, Any]]) -> None:
    assert {one["card"]["name"] for one in attached} == {"echo", "counter", "slow"}
    assert {one["transport"] for one in attached} == {"ATTACH"}


# ---- systemd -------------------------------------------------------------------------------------


def unit() -> dict[str, str]:
    """The unit's settings; of those that are given twice the last."""
    lines = [line for line in UNIT.read_text().splitlines() if "=" in line and line[0] not in "#["]
    return dict(line.split("=", 1) for line in lines)


def test_the_unit_gives_the_gateway_one_directory_and_no_rights() -> None:
    found, production = unit(), settings("production")
    assert found["DynamicUser"] == found["NoNewPrivileges"] == "yes"
    assert found["ProtectSystem"] == "strict"
    assert found["CapabilityBoundingSet"] == ""
    assert f"/var/lib/{found['StateDirectory']}" == str(production.data_dir)
    assert shlex.split(found["ExecStart"])[1:] == [
        "serve", "--config", "/etc/acp/config.yaml", "--data-dir", str(production.data_dir),
    ]  # fmt: skip
    assert int(found["LimitNOFILE"]) >= 2 * production.limits.live_sessions
    assert int(found["TimeoutStopSec"]) * 1000 >= 2 * production.grace.drain_grace_ms


def test_systemd_takes_the_unit_and_calls_it_little_exposed(needs: Needs, tmp_path: Path) -> None:
    analyze = needs("systemd-analyze")
    here = tmp_path / UNIT.name
    acp = Path(sys.executable).parent / "acp"
    here.write_text(UNIT.read_text().replace("/opt/acp/bin/acp", str(acp)))
    verified = ran(analyze, "verify", here)
    assert verified.returncode == 0, verified.stderr
    about_it = [line for line in verified.stderr.splitlines() if UNIT.name in line]
    assert about_it == []
    told = ran(analyze, "security", "--offline=true", here).stdout
    (level,) = re.findall(r"Overall exposure level for .*: ([0-9.]+)", told)
    assert float(level) <= EXPOSURE_MAX, told


# ---- Kubernetes ----------------------------------------------------------------------------------


def kubernetes() -> dict[tuple[str, str], dict[str, Any]]:
    """Every object by kind and name."""
    (listed,) = documents("kustomization.yaml")
    found = [one for name in listed["resources"] for one in documents(name)]
    return {(one["kind"], one["metadata"]["name"]): one for one in found}


def pod() -> dict[str, Any]:
    spec: dict[str, Any] = kubernetes()["StatefulSet", "acp-gateway"]["spec"]["template"]["spec"]
    return spec


def test_the_manifests_list_every_file_and_the_productive_settings() -> None:
    (listed,) = documents("kustomization.yaml")
    files = {f"k8s/{path.name}" for path in (DEPLOY / "k8s").iterdir()}
    assert set(listed["resources"]) == files - {FIRST_TOKEN}
    (generated,) = listed["configMapGenerator"]
    assert generated == {"name": "acp-gateway", "files": ["config.yaml=config/production.yaml"]}
    assert {kind for kind, _ in kubernetes()} == {
        "StatefulSet", "Service", "PodDisruptionBudget", "NetworkPolicy",
    }  # fmt: skip


def test_the_first_token_of_a_cluster_is_made_by_a_pod_on_the_gateways_disk() -> None:
    """With the gateway stopped, since two processes do not share a directory."""
    (found,) = documents(FIRST_TOKEN)
    spec, gateway = found["spec"], pod()
    for name in ("securityContext", "automountServiceAccountToken", "enableServiceLinks"):
        assert spec[name] == gateway[name], name
    (container,), (served,) = spec["containers"], gateway["containers"]
    for name in ("image", "securityContext"):
        assert container[name] == served[name], name
    state = kubernetes()["StatefulSet", "acp-gateway"]
    (template,) = state["spec"]["volumeClaimTemplates"]
    (volume,), (mount,) = spec["volumes"], container["volumeMounts"]
    claim = f"{template['metadata']['name']}-{state['metadata']['name']}-0"
    assert volume["persistentVolumeClaim"]["claimName"] == claim
    assert mount["mountPath"] == str(settings("production").data_dir)
    told = (DEPLOY / "README.md").read_text()
    namespace = documents("kustomization.yaml")[0]["namespace"]
    assert f"kubectl create namespace {namespace}" in told, "the kustomization makes none"
    assert f"kubectl -n {namespace} exec {found['metadata']['name']} -- acp tokens create" in told


def test_the_pod_is_no_root_and_writes_one_volume() -> None:
    security = pod()["securityContext"]
    assert security["runAsNonRoot"] is True
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    (user,) = {text.partition(":")[0] for text in of("USER")}
    assert str(security["runAsUser"]) == str(security["fsGroup"]) == user
    (container,) = pod()["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    writable = {m["mountPath"] for m in container["volumeMounts"] if not m.get("readOnly")}
    assert writable == {str(settings("production").data_dir), "/tmp"}
    assert pod()["automountServiceAccountToken"] is False
    assert pod()["enableServiceLinks"] is False, "ACP_* of a service would be read as settings"


def test_the_probes_are_answered_by_a_gateway_with_these_settings(serve: Serve) -> None:
    served = serve("--config", str(DEPLOY / "config/production.yaml"))
    (container,) = pod()["containers"]
    with Client(served.url) as client:
        for name in ("startupProbe", "readinessProbe", "livenessProbe"):
            asked = container[name]["httpGet"]
            headers = {one["name"].lower(): one["value"] for one in asked["httpHeaders"]}
            assert client.call("GET", asked["path"], **headers).status == 200, name
        assert client.call("GET", "/readyz", host="10.1.2.3:8080").status == 403


def test_names_ports_and_times_of_the_manifests_fit_together() -> None:
    production = settings("production")
    (container,) = pod()["containers"]
    ports = {one["name"]: one["containerPort"] for one in container["ports"]}
    assert ports == {"http": production.http.bind.port, "grpc": production.grpc.bind.port}
    labels = kubernetes()["StatefulSet", "acp-gateway"]["spec"]["template"]["metadata"]["labels"]
    for (kind, _), one in kubernetes().items():
        spec = one["spec"]
        selector = spec.get("podSelector") or spec["selector"]
        chosen = selector.get("matchLabels", selector)
        assert chosen.items() <= labels.items(), kind
        if kind == "Service":
            assert {port["targetPort"] for port in spec["ports"]} <= set(ports)
    grace_s = production.grace.drain_grace_ms / 1000
    assert pod()["terminationGracePeriodSeconds"] >= 2 * grace_s
    assert kubernetes()["StatefulSet", "acp-gateway"]["spec"]["replicas"] == 1
    assert "acp-gateway-0.acp-gateway" in production.http.allowed_hosts


def test_kubectl_builds_the_whole() -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is no Debian package: the manifests are checked by their form only")
    built = subprocess.run(
        [kubectl, "kustomize", str(DEPLOY)], capture_output=True, text=True, check=True
    )
    made = [one for one in yaml.safe_load_all(built.stdout) if one["kind"] == "ConfigMap"]
    (config,) = made
    assert config["data"]["config.yaml"] == (DEPLOY / "config/production.yaml").read_text()


# ---- alerts --------------------------------------------------------------------------------------


def rules() -> list[dict[str, Any]]:
    (found,) = documents("alerts/acp.rules.yaml")
    return [rule for group in found["groups"] for rule in group["rules"]]


def test_every_alert_says_what_a_person_does() -> None:
    for rule in rules():
        assert rule["labels"]["severity"] in ("page", "ticket"), rule["alert"]
        assert len(rule["annotations"]["action"]) > 40, rule["alert"]
        assert rule["annotations"]["summary"], rule["alert"]


def test_every_metric_in_an_alert_is_one_the_gateway_has(serve: Serve) -> None:
    with Client(serve().url) as client:
        page = client.get("/metrics").text
    served = set(re.findall(r"^# TYPE (acp_\w+) ", page, re.MULTILINE))
    for rule in rules():
        for metric in re.findall(r"\bacp_\w+", rule["expr"]):
            assert metric.removesuffix("_bucket") in served, (rule["alert"], metric)


def test_prometheus_takes_the_rules_and_they_fire_as_meant(needs: Needs) -> None:
    promtool = needs("promtool")
    for words in (["check", "rules", "acp.rules.yaml"], ["test", "rules", "acp.rules.test.yaml"]):
        done = ran(promtool, *words, cwd=DEPLOY / "alerts")
        assert done.returncode == 0, done.stdout + done.stderr
