"""The files that other programs read of this repository keep to their formats, and agree with the package."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

import rageval_spec
from rageval_spec.spec import json_schema
from tests.docs.test_ci import check, find_program
from tests.tiny import write_spec

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FORMS = sorted(path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").iterdir() if path.name != "config.yml")
HOOKS = ROOT / ".pre-commit-hooks.yaml"


def read_yaml(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def check_schema(schema: str, *paths: Path) -> None:
    check([find_program("check-jsonschema"), "--builtin-schema", f"vendor.{schema}", *paths])


def test_the_workflow_and_the_action_have_nothing_that_zizmor_finds() -> None:
    files = [ROOT / ".github" / "workflows" / "release.yml", ROOT / "action.yml"]
    check([find_program("zizmor"), "--offline", "--quiet", "--persona", "auditor", *files])


def test_every_action_is_pinned_to_a_commit_with_its_version_beside_it() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    uses = re.findall(r"uses: (.*)", text)
    assert uses
    assert [one for one in uses if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one)] == []


def test_issue_forms_and_the_citation_keep_to_their_schemas() -> None:
    check_schema("github-issue-forms", *FORMS)
    check_schema("github-issue-config", ROOT / ".github" / "ISSUE_TEMPLATE" / "config.yml")
    check_schema("citation-file-format", ROOT / "CITATION.cff")


def test_the_versions_are_the_packages() -> None:
    assert read_yaml("CITATION.cff")["version"] == rageval_spec.__version__
    assert read_yaml("packaging/conda/recipe.yaml")["context"]["version"] == rageval_spec.__version__


def test_the_citation_has_the_day_of_the_release() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.search(rf"^## \[{re.escape(rageval_spec.__version__)}\] - (.*)$", text, re.MULTILINE)
    assert read_yaml("CITATION.cff").get("date-released") == (released[1] if released else None)


def split(requirement: str) -> tuple[str, str]:
    """The name as conda writes it, and the lower bound."""
    found = Requirement(requirement)
    return found.name.replace("huggingface-hub", "huggingface_hub"), str(found.specifier)


def test_the_conda_recipe_has_the_dependencies_of_the_package() -> None:
    needs = read_yaml("packaging/conda/recipe.yaml")["requirements"]
    listed = {tuple(one.split(" ", 1)) for one in needs["run"] if one != "python"}
    assert listed == {split(one) for one in PROJECT["project"]["dependencies"]}
    optional = PROJECT["project"]["optional-dependencies"]["onnx"]
    assert {tuple(one.split(" ", 1)) for one in needs["run_constraints"]} == {split(one) for one in optional}
    assert f"maturin {PROJECT['build-system']['requires'][0].removeprefix('maturin')}" in needs["host"]


def test_every_dependency_is_explained() -> None:
    page = (ROOT / "docs" / "decisions" / "dependencies.md").read_text(encoding="utf-8")
    rows = {
        name for names in re.findall(r"^\| ([^|]+) \|", page, re.MULTILINE) for name in re.findall("`([^`]+)`", names)
    }
    assert {Requirement(one).name for one in PROJECT["project"]["dependencies"]} <= rows
    extras = {*PROJECT["project"]["optional-dependencies"]}
    assert extras == rows - {Requirement(one).name for one in PROJECT["project"]["dependencies"]}
    assert all(re.fullmatch("[a-z0-9]+", extra) for extra in extras)


def test_the_entry_for_schemastore_is_complete_and_names_a_schema_that_is_published() -> None:
    entry = json.loads((ROOT / "packaging" / "schemastore.json").read_text(encoding="utf-8"))
    assert entry.keys() == {"name", "description", "fileMatch", "url"}
    assert len(entry["description"]) < 200 and not entry["description"].endswith(".")
    # Patterns of the catalog may not match files of other programs.
    assert all("rageval" in pattern for pattern in entry["fileMatch"])
    path = entry["url"].partition("/main/")[2]
    assert json.loads((ROOT / path).read_text(encoding="utf-8"))["$schema"].endswith("draft-07/schema#")
    assert json_schema.render_schema()


def test_hadolint_accepts_the_dockerfile() -> None:
    check([find_program("hadolint"), ROOT / "packaging" / "Dockerfile"])


def test_the_dockerfile_runs_the_command_without_rights() -> None:
    lines = (ROOT / "packaging" / "Dockerfile").read_text(encoding="utf-8").splitlines()
    last = lines[max(number for number, line in enumerate(lines) if line.startswith("FROM ")) :]
    assert "USER 1000" in last
    assert 'ENTRYPOINT ["rageval-spec"]' in last
    assert all(":" in line.split()[1] for line in lines if line.startswith("FROM "))


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A repository with the hooks of this one."""
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / HOOKS.name).write_bytes(HOOKS.read_bytes())
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "hooks")
    return folder


def test_pre_commit_runs_the_hooks(tmp_path: Path, source: Path) -> None:
    program = find_program("pre-commit")
    check([program, "validate-manifest", HOOKS])
    user, programs = tmp_path / "user", tmp_path / "bin"
    for folder in (user / "evals", programs):
        folder.mkdir(parents=True)
    write_spec(user / "evals")
    wrong = write_spec(user / "evals", "wrong.yaml", metrics=["ncdg@10"])
    ids = [{"id": f"rageval-spec-{name}"} for name in ("validate", "upgrade")]
    repository = {"repo": str(source), "rev": git(source, "rev-parse", "HEAD"), "hooks": ids}
    (user / ".pre-commit-config.yaml").write_text(yaml.safe_dump({"repos": [repository]}))
    (programs / "rageval-spec").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m rageval_spec "$@"\n')
    (programs / "rageval-spec").chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PRE_COMMIT_HOME": str(tmp_path / "cache")}
    git(user, "init", "--quiet")
    git(user, "add", "--all")
    command = [program, "run", "--all-files"]
    found = subprocess.run(command, cwd=user, env=environment, capture_output=True, text=True)
    assert found.returncode == 1, found.stdout + found.stderr
    assert "did you mean 'ndcg@10'?" in found.stdout
    wrong.unlink()
    git(user, "add", "--all")
    check(command, cwd=user, env=environment)
