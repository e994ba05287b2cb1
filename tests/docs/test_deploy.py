"""deploy/: as far as it can be tried without a service manager, a container engine or a cluster."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from edgewise.cli.app import app

DEPLOY = Path(__file__).parents[2] / "deploy"
UNIT, RELAY = DEPLOY / "edgewise-peer@.service", DEPLOY / "edgewise-relay.service"


@pytest.mark.parametrize("unit", [UNIT, RELAY], ids=["peer", "relay"])
def test_systemd_takes_the_unit(unit):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze here")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True
    )
    assert unit.name not in done.stderr, done.stderr


def documents(name="kubernetes.yaml"):
    yaml = pytest.importorskip("yaml", reason="PyYAML comes with the extra docs")
    return {each["kind"]: each for each in yaml.safe_load_all((DEPLOY / name).read_text())}


@pytest.mark.parametrize("name", ["kubernetes.yaml", "kubernetes-relay.yaml"])
def test_clusters_take_the_manifests_by_their_schemas(name):
    known = pytest.importorskip(
        "kubernetes_validate", reason="needs the schemas: pip install kubernetes-validate"
    )
    for document in documents(name).values():
        known.validate(document, known.latest_version(), strict=True)


def test_what_the_cluster_is_told_hangs_together():
    found = documents()
    pod = found["Job"]["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == set(volumes)
    assert volumes["identity"]["secret"]["defaultMode"] == 0o440, "YAML 1.1 reads 0440 as octal"
    assert found["Service"]["spec"]["selector"] == pod["metadata"]["labels"]
    claim = volumes["state"]["persistentVolumeClaim"]["claimName"]
    assert claim == found["PersistentVolumeClaim"]["metadata"]["name"]
    ports = {port["name"] for port in container["ports"]}
    probes = [container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")]
    assert [probe["path"] for probe in probes] == ["/healthz", "/healthz", "/readyz"]
    assert {probe["port"] for probe in probes} <= ports
    assert found["Service"]["spec"]["ports"][0]["targetPort"] in ports


def started_by(unit):
    (words,) = re.findall(r"^ExecStart=/usr/bin/env edgewise (.*)$", unit.read_text(), re.M)
    return words.split()


def test_a_relay_in_a_cluster_hangs_together():
    found = documents("kubernetes-relay.yaml")
    pod = found["Deployment"]["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    assert found["Deployment"]["spec"]["selector"]["matchLabels"] == pod["metadata"]["labels"]
    assert found["Service"]["spec"]["selector"] == pod["metadata"]["labels"]
    assert found["Deployment"]["spec"]["replicas"] == 1, "two would not know of each other's calls"
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert found["Service"]["spec"]["ports"][0]["targetPort"] in ports
    assert f"0.0.0.0:{ports['relay']}" in container["args"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts["identity"] in container["args"]
    assert mounts["log"] in container["args"]
    assert {volume["name"] for volume in pod["spec"]["volumes"]} == set(mounts)


def test_commands_are_those_that_there_are():
    pods = documents()["Job"], documents("kubernetes-relay.yaml")["Deployment"]
    containers = [pod["spec"]["template"]["spec"]["containers"][0]["args"] for pod in pods]
    for command in (started_by(UNIT), started_by(RELAY), *containers):
        of_network = command[: 1 + (command[0] == "network")]
        told = CliRunner().invoke(app, [*of_network, "--help"]).output
        assert all(word in told for word in command if word.startswith("--"))
    copied = re.findall(r"^COPY (?:--from=\S+ )?(\S+)", (DEPLOY / "Dockerfile").read_text(), re.M)
    assert copied == [".", "/opt/edgewise"]
