"""Builds the wheel and the source archive, and checks what people will install: `make release-check`.

    uv run --group release python packaging/release_check.py [--draft] [--wheels FOLDER]

- No file has a placeholder for the address of the repository, and CHANGELOG.md has the day of the release, which is
  that of the tag if there is one. `--draft` only tells of both.
- Two builds in two folders have one hash; the second one is built from the source archive.
- twine, abi3audit, auditwheel and check-wheel-contents accept the wheel; it has at most 12 MB.
- The bill of materials is in it, is JSON, and names every crate and no folder of this machine.
- It installs into an empty environment without an index, in at most 400 MB, and runs the demo and a spec there; with
  the extra `minilm`, the quickstart too.

An index is needed once, for the wheels of the dependencies, which `--wheels` keeps. What cannot be built on Linux on
x86_64 (musllinux, aarch64, macOS, Windows) is built and installed by .github/workflows/release.yml only.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from normalize_wheel import normalize

ROOT = Path(__file__).parents[1]
MOST_BYTES, MOST_INSTALLED = 12_000_000, 400 << 20
BASE_METRICS = "metrics=[ndcg@10, rr, recall@20, {use: faithfulness, judge: overlap}, latency@p95]"
"""The quickstart without the metrics that need a model."""
PLACEHOLDER = "your-org/"
"""Stands for the owner of the repository until it has an address."""


def run(*command: str | Path, **options: object) -> str:
    """The output of a command, which must succeed."""
    found = subprocess.run([*map(str, command)], capture_output=True, text=True, **options)  # type: ignore[call-overload]
    if found.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{found.stdout}{found.stderr}")
    return str(found.stdout + found.stderr)


def say(text: str) -> None:
    print(text, flush=True)


def build(kind: str, source: Path, output: Path) -> Path:
    """Build a wheel or source archive from a folder, with nothing in it that depends on the folder or the clock."""
    cargo = os.environ.get("CARGO_HOME", str(Path.home() / ".cargo"))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {
        "SOURCE_DATE_EPOCH": find_time(),
        "CARGO_TARGET_DIR": str(output / "target"),
        "MATURIN_PEP517_ARGS": "--compatibility pypi",  # the tag of the oldest glibc that has what the wheel uses
        "RUSTFLAGS": f"--remap-path-prefix={source}=/src --remap-path-prefix={cargo}=/cargo",
    }
    for old in output.glob("*.whl" if kind == "wheel" else "*.tar.gz"):
        old.unlink()
    run("uv", "build", f"--{kind}", "--out-dir", output, source, env=environment)
    (made,) = output.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    if kind == "wheel":
        normalize(made)
    return made


@cache
def find_time() -> str:
    """The time of the last commit, which all files have, in seconds."""
    return run("git", "log", "-1", "--format=%ct", cwd=ROOT).strip()


def find_unfinished(root: Path = ROOT) -> list[str]:
    """What a repository lacks before it can be published: an address, and the day of the release."""
    found = subprocess.run(
        [
            "git",
            "grep",
            "-n",
            "-I",
            "-o",
            PLACEHOLDER,
            "--",
            ".",
            ":!tests",
            ":!CONTRIBUTING.md",
            f":!packaging/{Path(__file__).name}",
        ],
        cwd=root,
        capture_output=True,
        text=True,
    )
    if found.returncode > 1:
        raise SystemExit(found.stderr)
    places = [line.rpartition(":")[0] for line in found.stdout.splitlines()]
    faults = [f"{place}: write the owner of the repository in place of {PLACEHOLDER[:-1]}" for place in places]
    version = tomllib.loads((root / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    head = re.search(rf"^## \[{re.escape(version)}\] - (\S+)$", (root / "CHANGELOG.md").read_text(), re.MULTILINE)
    tags = run("git", "tag", "--points-at", "HEAD", "--format=%(refname:short) %(creatordate:short)", cwd=root)
    released = dict(line.split(" ") for line in tags.splitlines() if line.startswith("v"))
    faults += [f"tag {tag}: the version is {version}" for tag in released if tag != f"v{version}"]
    day = released.get(f"v{version}")
    if head is None:
        faults.append(f"CHANGELOG.md: has no line '## [{version}] - {day or 'YYYY-MM-DD'}'")
    elif day and head[1] != day:
        faults.append(f"CHANGELOG.md: has {head[1]} as the day of {version}, and its tag {day}")
    return faults


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def build_twice(folder: Path) -> tuple[Path, Path]:
    """The wheel and the source archive, after a second build with equal bytes."""
    sources = folder / "one" / "rageval_spec", folder / "two"
    for source in sources:
        shutil.rmtree(source, ignore_errors=True)
        source.mkdir(parents=True)
    tracked = run("git", "ls-files", "-z", cwd=ROOT).split("\0")
    for name in filter(None, tracked):
        if (ROOT / name).is_file():
            (sources[0] / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, sources[0] / name)
    (folder / "built-one").mkdir(exist_ok=True)
    (folder / "built-two").mkdir(exist_ok=True)
    archive = build("sdist", sources[0], folder / "built-one")
    with tarfile.open(archive) as file:
        file.extractall(sources[1], filter="data")
    (inner,) = sources[1].iterdir()
    again = build("sdist", inner, folder / "built-two")
    report_difference(archive, again)
    wheel = build("wheel", sources[0], folder / "built-one")
    report_difference(wheel, build("wheel", inner, folder / "built-two"))
    return wheel, archive


def report_difference(first: Path, second: Path) -> None:
    if digest(first) == digest(second):
        say(f"reproducible: {first.name}, sha256 {digest(first)}")
        return
    differing = ""
    if first.suffix == ".whl":
        with zipfile.ZipFile(first) as one, zipfile.ZipFile(second) as two:
            names = {*one.namelist(), *two.namelist()}
            both = {*one.namelist()} & {*two.namelist()}
            differing = ", ".join(
                sorted(name for name in names if name not in both or one.read(name) != two.read(name))
            )
    raise SystemExit(f"{first} and {second} differ: {differing or 'in order, times or permissions'}")


def check_files(wheel: Path, archive: Path) -> None:
    """What other tools say of the wheel, its size, and its bill of materials."""
    python = sys.executable
    run(python, "-m", "twine", "check", "--strict", wheel, archive)
    run(python, "-m", "abi3audit", "--strict", wheel)
    run(python, "-m", "check_wheel_contents", "--config", ROOT / "pyproject.toml", wheel)
    shown = " ".join(run(python, "-m", "auditwheel", "show", wheel).split())
    tag = re.search(r'platform tag: "([^"]+)"', shown)
    if tag is None or tag[1] not in wheel.name:
        raise SystemExit(f"{wheel}: auditwheel finds another tag: {shown}")
    size = wheel.stat().st_size
    if size > MOST_BYTES:
        raise SystemExit(f"{wheel}: has {size:,} bytes, more than {MOST_BYTES:,}")
    say(f"{wheel.name}: {size:,} bytes, {tag[1]}; {archive.name}: {archive.stat().st_size:,} bytes")
    check_bill(wheel)


def check_bill(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        (name,) = (name for name in file.namelist() if name.endswith(".cyclonedx.json"))
        text = file.read(name).decode()
        core = file.read(next(one for one in file.namelist() if "_core." in one and not one.endswith(".pyi")))
    bill = json.loads(text)
    named = {(one["name"], one["version"]) for one in bill["components"]}
    locked = {(one["name"], one["version"]) for one in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]}
    own = [str(ROOT), str(Path.home())]
    leaks = [folder for folder in own if folder in text.replace("/src/", "") or folder.encode() in core]
    if bill["bomFormat"] != "CycloneDX" or not named <= locked or len(named) < 20 or leaks:
        raise SystemExit(f"{wheel}: its bill of materials is wrong: {sorted(named - locked)} {leaks}")
    say(f"{name}: CycloneDX {bill['specVersion']}, {len(named)} crates")


def install(folder: Path, wheels: Path, *requirements: str) -> Path:
    """An environment with the requirements, from the folder of wheels alone; returns its programs."""
    place = folder / "environment"
    shutil.rmtree(place, ignore_errors=True)
    run("uv", "venv", place)
    run("uv", "pip", "install", "--no-cache", "--python", place, "--no-index", "--find-links", wheels, *requirements)
    size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file() and not path.is_symlink())
    count = run("uv", "pip", "list", "--python", place, "--format", "freeze").count("==")
    say(f"{' '.join(requirements)}: {count} packages, {size / (1 << 20):.0f} MB")
    if requirements == ("rageval-spec",) and size > MOST_INSTALLED:
        raise SystemExit(f"the base install has more than {MOST_INSTALLED >> 20} MB")
    return place / "bin"


def check_installed(folder: Path, wheels: Path) -> None:
    """Install the wheel and use it, where nothing listens at the proxy that every request would go to."""
    closed = dict.fromkeys(("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"), "http://127.0.0.1:9")
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment = kept | closed | {"HF_HUB_OFFLINE": "1", "RAGEVAL_CACHE": str(folder / "cache")}

    def use(programs: Path, *arguments: str | Path) -> str:
        return run(programs / "rageval-spec", *arguments, env=environment, cwd=folder)

    def evaluate(programs: Path, *overrides: str) -> None:
        shutil.rmtree(folder / "results", ignore_errors=True)
        options = [part for override in overrides for part in ("--set", override)]
        options += ["--no-history", "--store", str(folder / "store"), "-o", str(folder / "results")]
        shown = use(programs, "run", ROOT / "specs" / "quickstart.yaml", *options)
        say(next(line for line in shown.splitlines() if "gates passed" in line))
        use(programs, "validate", folder / "results")

    for name in ("store", "cache", "demo"):
        shutil.rmtree(folder / name, ignore_errors=True)
    base = install(folder, wheels, "rageval-spec")
    evaluate(base, BASE_METRICS)
    check_demo(base, folder, environment)
    evaluate(install(folder, wheels, "rageval-spec[minilm]"))


def check_demo(programs: Path, folder: Path, environment: dict[str, str]) -> None:
    """The demo shows a red gate."""
    (folder / "demo").mkdir()
    command = [str(programs / "rageval-spec"), "demo"]
    found = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder / "demo")
    red = [line for line in found.stdout.splitlines() if re.search(r"gates? failed", line)]
    if found.returncode or not red:
        raise SystemExit(f"the demo ended with {found.returncode}\n{found.stdout}{found.stderr}")
    say(f"demo: {red[0].strip()}")


def fill(wheels: Path, own: Path) -> None:
    """Put the wheel and those of its dependencies into the folder; the latter are downloaded if one is lacking."""
    wheels.mkdir(parents=True, exist_ok=True)
    for old in wheels.glob("rageval_spec-*.whl"):
        old.unlink()
    shutil.copy(own, wheels)
    wanted = f"{wheels / own.name}[minilm,multilingual]"
    listed = ["uvx", "pip", "download", "--quiet", "--dest", str(wheels)]
    lacking = subprocess.run([*listed, "--no-index", "--find-links", str(wheels), wanted], capture_output=True)
    if lacking.returncode:
        run(*listed, wanted)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, default=ROOT / "target" / "release-check", help="where to work")
    parser.add_argument("--wheels", type=Path, help="the wheels of the dependencies; by default in that folder")
    parser.add_argument("--draft", action="store_true", help="go on where the repository is not ready to be published")
    chosen = parser.parse_args(arguments)
    if unfinished := find_unfinished():
        say("not ready to be published:\n  " + "\n  ".join(unfinished))
        if not chosen.draft:
            raise SystemExit("mend these, or give --draft to check the rest")
    folder = chosen.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    wheel, archive = build_twice(folder)
    check_files(wheel, archive)
    wheels = (chosen.wheels or folder / "wheels").resolve()
    fill(wheels, wheel)
    check_installed(folder, wheels)
    say("untested here: musllinux, aarch64, macOS, Windows; the release workflow builds and installs them")


if __name__ == "__main__":
    main()
