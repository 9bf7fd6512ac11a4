"""The page on scaling: its manifest has the structure of a RayJob, and what it runs exists."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import yaml

from rageval_spec.commands.run import run
from rageval_spec.engines.ray import RayNode
from rageval_spec.spec import loads

PAGE = Path(__file__).parents[2] / "docs" / "scaling.md"


def read_manifest() -> tuple[dict[str, Any], dict[str, Any]]:
    (block,) = re.findall(r"```yaml\n# rayjob.yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    job, config = yaml.safe_load_all(block)
    return job, config


def list_options(command: str) -> list[str]:
    program, word, *arguments = shlex.split(command)
    assert (program, word) == ("rageval-spec", "run")
    return [argument for argument in arguments if argument.startswith("-")]


def test_the_manifest_is_a_ray_job() -> None:
    job, config = read_manifest()
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    cluster = job["spec"]["rayClusterSpec"]
    assert cluster.keys() == {"rayVersion", "headGroupSpec", "workerGroupSpecs"}
    head: dict[str, Any] = cluster["headGroupSpec"]
    workers: list[dict[str, Any]] = cluster["workerGroupSpecs"]
    assert all(one["minReplicas"] <= one["replicas"] <= one["maxReplicas"] for one in workers)
    assert head["rayStartParams"] == {"num-cpus": "0"}  # the parameters of 'ray start' are texts
    for group in (head, *workers):
        pod = group["template"]["spec"]
        mounted = {mount["name"] for container in pod["containers"] for mount in container["volumeMounts"]}
        assert mounted == {volume["name"] for volume in pod["volumes"]}
        assert "shm" in mounted
    maps = [volume["configMap"]["name"] for volume in head["template"]["spec"]["volumes"] if "configMap" in volume]
    assert maps == [config["metadata"]["name"]]


def test_the_job_runs_its_spec() -> None:
    job, config = read_manifest()
    known = {name for parameter in run.params for name in parameter.opts}
    assert {*list_options(job["spec"]["entrypoint"])} <= known
    spec = loads(config["data"]["spec.yaml"], environment={"JUDGE_KEY": "key"}, check_files=False)
    assert spec.engine == RayNode(address="auto")
    assert json.loads(config["data"]["golden.jsonl"]).keys() == {"id", "question", "reference"}


def test_the_command_of_ray_job_submit_exists() -> None:
    (command,) = re.findall(r"ray job submit .* -- (rageval-spec .*)", PAGE.read_text())
    assert [*list_options(command)] == ["--set"]


def test_every_key_of_the_engine_is_described() -> None:
    described = set(re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE))
    assert described == {*RayNode.model_fields} - {"use"}
