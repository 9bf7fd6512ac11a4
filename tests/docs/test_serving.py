"""docs/serving.md and the files to run it and a monitor: they can be read, and say what the program does."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from rageval_spec.cli import cli
from rageval_spec.endpoints.http_server import MOST_CONNECTIONS, PATIENCE
from rageval_spec.pipeline.planning.spec_plugins import build_parts
from rageval_spec.serving.answer_check import AnswerCheck
from rageval_spec.serving.server import LARGEST, LONGEST, MOST_CONTEXTS, CheckLimits, describe_api
from rageval_spec.spec import loads

DOCS = Path(__file__).parents[2] / "docs"
TEXTS = {name: (DOCS / f"{name}.md").read_text(encoding="utf-8") for name in ("serving", "monitoring")}


def list_blocks(name: str, language: str) -> list[str]:
    return re.findall(rf"```{language}[^\n]*\n(.*?)```", TEXTS[name], re.DOTALL)


def list_files(name: str) -> list[Any]:
    """The documents of compose and Kubernetes."""
    texts = [text for text in list_blocks(name, "yaml") if text.startswith("#")]
    return [content for text in texts for content in yaml.safe_load_all(text)]


def test_the_example_gets_the_reply_that_is_shown(tmp_path: Path) -> None:
    spec = loads(list_blocks("serving", "yaml")[0], folder=tmp_path, check_files=False)
    asked = json.loads(re.findall(r"curl -d '(.*?)'", TEXTS["serving"])[0])
    found = AnswerCheck.of(spec, build_parts(spec)).check(**asked)
    (shown,) = (json.loads(text) for text in list_blocks("serving", "json"))
    assert {**found, "seconds": shown["seconds"], "checks": None} == {**shown, "checks": None}
    assert {**found["checks"][0], "value": round(found["checks"][0]["value"], 1)} == shown["checks"][0]


def test_the_limits_are_those_of_the_server() -> None:
    rows = dict(re.findall(r"^\| (\d{3}) \| (.*) \|$", TEXTS["serving"], re.MULTILINE))
    assert set(rows) == set(describe_api("x", has_token=True)["paths"]["/check"]["post"]["responses"])
    assert f"{PATIENCE:g} s" in rows["408"]
    assert f"{LARGEST:,} bytes" in rows["413"]
    assert f"{MOST_CONTEXTS} contexts" in rows["422"] and f"{LONGEST:,} characters" in rows["422"]
    limits = CheckLimits()
    assert f"{limits.most} checks" in rows["503"] and f"({limits.seconds:g} s)" in rows["503"]
    assert f"{MOST_CONNECTIONS} connections" in rows["503"]


@pytest.mark.parametrize("name", TEXTS)
def test_containers_listen_where_their_probes_ask(name: str) -> None:
    contents = list_files(name)
    port = {"serving": 8008, "monitoring": 9464}[name]
    (service,) = contents[0]["services"].values()
    assert f"http://127.0.0.1:{port}/healthz" in service["healthcheck"]["test"][-1]
    assert service["ports"] == [f"127.0.0.1:{port}:{port}"]
    workload = next(one for one in contents if one.get("kind") in ("Deployment", "StatefulSet"))
    (container,) = workload["spec"]["template"]["spec"]["containers"]
    assert container["ports"] == [{"name": "http", "containerPort": port}]
    assert container["args"] == service["command"]
    assert workload["spec"]["selector"]["matchLabels"] == workload["spec"]["template"]["metadata"]["labels"]
    if name == "serving":
        assert "0.0.0.0:8008" in container["args"]
    else:
        assert "serve: 0.0.0.0:9464" in TEXTS[name]
        assert {"name": "state", "mountPath": "/srv"} in container["volumeMounts"]


@pytest.mark.parametrize("name", TEXTS)
def test_the_commands_have_the_options_that_are_shown(name: str) -> None:
    commands = re.findall(r"^ExecStart=\S+rageval-spec (.*)$", TEXTS[name], re.MULTILINE)
    commands += [" ".join(one["command"][1:]) for one in list_files(name)[0]["services"].values()]
    for command in commands:
        words = command.split()[: 2 if command.startswith("monitor") else 1]
        told = CliRunner().invoke(cli, [*words, "--help"]).output
        assert [one for one in command.split() if one.startswith("--") and one not in told] == []


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is missing; it is part of systemd")
def test_the_units_are_valid(tmp_path: Path) -> None:
    units = [text for name in TEXTS for text in list_blocks(name, "ini")]
    paths = []
    for text in units:
        path = tmp_path / text.splitlines()[0].rpartition("/")[2]
        path.write_text(text.replace("/opt/rageval/bin/rageval-spec", "/bin/true").replace("User=rageval", "User=root"))
        paths.append(path)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=one", *paths], capture_output=True, text=True
    )
    assert [line for line in done.stderr.splitlines() if "rageval" in line] == []
    assert len(paths) == 4
