""""""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from safetensors.numpy import save_file

from onnx_from_checkpoints.errors import CheckpointError, DamagedFile, UnsupportedModel
from onnx_from_checkpoints.model_graph import find_architecture
from onnx_from_checkpoints.weights import read_weights
from rageval_spec.errors import DataError, RagevalError, UsageError
from rageval_spec.inference.embedded_models import EmbeddedModel
from rageval_spec.inference.encoder import load_encoder
from rageval_spec.inference.exports import export_model, provide_graph
from rageval_spec.inference.model_files import (
    ModelFiles,
    choose_files,
    choose_tokenizer,
    find_hub_cache,
    find_missing,
    find_source,
    list_external_data,
    list_inputs,
    locate,
    read_config,
    refuse_without_tokenizer,
    say_fetch,
    translated,
)
from rageval_spec.inference.session import Session
from rageval_spec.inference.tokens import find_reply_ids, measure_unread
from rageval_spec.plugin import Context
from tests.onnx_from_checkpoints.folders import DENSE, POOLING, TRANSFORMER, write_encoder, write_json

NEEDED = ("config.json", "tokenizer.json")


def source_of(folder: Path, file: str | None = None) -> ModelFiles:
    found = find_source(locate(str(folder), Path()), file)
    assert found is not None
    return found


BOTH = ["onnx/model.onnx", "onnx/model_O3.onnx", "model.safetensors", *NEEDED]


def choose(names: Collection[str] = BOTH, config: Any = None, **wanted: Any) -> str:
    return choose_files(names, "m", **wanted, find_config=lambda: config)[0].weights[0]


@pytest.mark.parametrize("model_type", ["bert", "deberta-v2", "modernbert", "xlm-roberta", "t5", "nomic_bert"])
def test_of_both_the_graph_that_is_built_here_is_run(model_type: str) -> None:
    assert choose(config={"model_type": model_type}) == "model.safetensors"
    assert choose(["onnx/model.onnx", "model.safetensors.index.json", *NEEDED], config={"model_type": model_type}) == (
        "model.safetensors.index.json"
    )


@pytest.mark.parametrize(
    "config",
    [
        None,
        {},
        {"model_type": "qwen3"},
        {"model_type": "bert", "architectures": ["BertForMaskedLM"]},
        {"model_type": "t5", "architectures": ["T5ForSequenceClassification"]},
        {"model_type": "bert", "auto_map": {"AutoModel": "modeling_bert.JinaBertModel"}},
    ],
)
def test_of_both_the_repositorys_graph_is_run_if_config_json_does_not_show_another(config: Any) -> None:
    assert choose(config=config) == "onnx/model.onnx"
    assert choose(config=config, graph="own") == "model.safetensors"


def test_code_that_the_graphs_here_were_made_from_is_no_reason_for_the_repositorys_graph() -> None:
    config = {"model_type": "nomic_bert", "auto_map": {"AutoModel": "modeling_hf_nomic_bert.NomicBertModel"}}
    assert choose(config=config) == "model.safetensors"


def test_the_spec_chooses_the_graph_or_the_file() -> None:
    bert = {"model_type": "bert"}
    assert choose(config=bert, graph="repository") == "onnx/model.onnx"
    assert choose(config=bert, file="onnx/model_O3.onnx") == "onnx/model_O3.onnx"
    assert choose(config=None, file="model.safetensors") == "model.safetensors"
    assert choose([*BOTH, "model.fp16.safetensors"], file="model.fp16.safetensors") == "model.fp16.safetensors"
    assert choose(["model.onnx", *NEEDED]) == "model.onnx"
    assert choose(["model.safetensors", *NEEDED], config={"model_type": "qwen3"}) == "model.safetensors"


@pytest.mark.parametrize(
    ("names", "wanted", "message"),
    [
        (["model.onnx", *NEEDED], {"graph": "own"}, "graph: own needs model.safetensors, which m does not have"),
        (
            ["model.safetensors", *NEEDED],
            {"graph": "repository"},
            "needs model.onnx, .*; leave it out",
        ),
        (["model.safetensors", "a.onnx", *NEEDED], {"graph": "repository"}, "name one of these in 'file:': a.onnx"),
        (BOTH, {"graph": "own", "file": "onnx/model.onnx"}, "graph: own contradicts file: onnx/model.onnx"),
        (BOTH, {"graph": "repository", "file": "model.safetensors"}, "repository contradicts file: model.safetensors"),
        (BOTH, {"file": "model.safetensor"}, "has no file 'model.safetensor'; did you mean 'model.safetensors'"),
    ],
)
def test_a_graph_that_is_not_there_or_another_files_is_an_error(names: Any, wanted: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        choose(names, **wanted)


@pytest.mark.parametrize("data", ["onnx/model.onnx_data", "onnx/model.onnx.data", "onnx/model.onnx_data_1"])
def test_external_weights_belong_to_their_onnx_file(data: str) -> None:
    chosen, _ = choose_files(["onnx/model.onnx", data, "onnx/other.onnx_data", *NEEDED], "m")
    assert chosen.weights == ("onnx/model.onnx", data)


def test_safetensors_are_used_without_an_onnx_file() -> None:
    chosen, _ = choose_files(["model.safetensors", "pytorch_model.bin", "onnx/model_O1.onnx", *NEEDED], "m")
    assert (chosen.format, chosen.weights) == ("safetensors", ("model.safetensors",))


@pytest.mark.parametrize("vocabulary", ["spm.model", "sentencepiece.model", "sentencepiece.bpe.model", "vocab.txt"])
def test_a_vocabulary_is_a_tokenizer_too(vocabulary: str) -> None:
    assert choose_files(["model.onnx", vocabulary], "m")[0].tokenizer == (vocabulary,)


def test_a_sentencepiece_model_beside_tokenizer_json_does_not_change_the_keys_of_stored_vectors() -> None:
    assert choose_files(["model.onnx", *NEEDED, "spm.model"], "m")[0].tokenizer == ("tokenizer.json",)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "m: the folder is empty"),
        (["pytorch_model.bin", *NEEDED], "only in pytorch_model.bin.*`use: sentence_transformers`"),
        (["a.onnx", "b.onnx", *NEEDED], "no model.onnx; name one of these in 'file:': a.onnx, b.onnx"),
        (
            ["config.json", "notes.txt"],
            "no weights: neither onnx/model.onnx nor model.safetensors .*config.json, notes",
        ),
        (
            ["model.onnx", "config.json"],
            r"has no tokenizer: neither tokenizer.json nor a vocabulary .* its files \(config.json, model.onnx",
        ),
        (["model.onnx", "tokenizer_config.json"], "has no tokenizer"),
    ],
)
def test_missing_files_are_named(names: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        choose_files(names, "m")


def test_a_file_with_a_similar_name_is_suggested() -> None:
    with pytest.raises(UsageError, match=r"m: has no file 'onnx/model_03\.onnx'; did you mean 'onnx/model_O3\.onnx'"):
        choose_files(["onnx/model_O3.onnx", *NEEDED], "m", "onnx/model_03.onnx")


def test_a_folder_is_relative_to_the_spec(tmp_path: Path) -> None:
    write_encoder(tmp_path / "models" / "small")
    location = locate("models/small", tmp_path)
    assert (location.kind, location.folder) == ("folder", tmp_path / "models" / "small")
    source = find_source(location)
    assert source is not None
    assert source.weights == ("model.safetensors",)
    assert {file.path.relative_to(source.folder).as_posix() for file in list_inputs(source)} == {
        "model.safetensors",
        "tokenizer.json",
        "config.json",
        "modules.json",
        "sentence_bert_config.json",
        "1_Pooling/config.json",
    }


@pytest.mark.parametrize("place", ["model.onnx", "onnx/model_quantized.onnx"])
def test_an_onnx_file_takes_the_rest_from_its_folder(tmp_path: Path, place: str) -> None:
    write_encoder(tmp_path / "small")
    (tmp_path / "small" / place).parent.mkdir(exist_ok=True)
    (tmp_path / "small" / place).write_bytes(b"graph")
    source = find_source(locate(f"small/{place}", tmp_path))
    assert source is not None
    assert (source.folder, source.weights, source.tokenizer) == (tmp_path / "small", (place,), ("tokenizer.json",))


def test_a_folder_named_onnx_may_contain_a_whole_model(tmp_path: Path) -> None:
    folder = write_encoder(tmp_path / "onnx")
    (folder / "m.onnx").write_bytes(b"graph")
    source = find_source(locate("onnx/m.onnx", tmp_path))
    assert source is not None
    assert (source.folder, source.weights) == (folder, ("m.onnx",))


def test_sharded_weights(tmp_path: Path) -> None:
    folder = write_encoder(tmp_path / "small")
    (folder / "model.safetensors").unlink()
    write_json(folder / "model.safetensors.index.json", {"weight_map": {"x": "b.safetensors", "y": "a.safetensors"}})
    assert source_of(folder).weights == ("model.safetensors.index.json", "a.safetensors", "b.safetensors")


@pytest.mark.parametrize("content", [[], {}, {"weight_map": {"x": "../secret"}}, {"weight_map": {"x": 3}}])
def test_a_malformed_index_of_weights(tmp_path: Path, content: object) -> None:
    folder = write_encoder(tmp_path / "small")
    (folder / "model.safetensors").unlink()
    write_json(folder / "model.safetensors.index.json", content)
    with pytest.raises(DataError, match=r"model\.safetensors\.index\.json: is not an index of weights"):
        source_of(folder)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("minlim", r"there is no model 'minlim' \(embedded: minilm, multilingual\); did you mean 'minilm'\?"),
        ("MiniLM", "did you mean 'minilm'"),
        ("bge-small", "no model or folder 'bge-small'.*as in sentence-transformers/bge-small"),
        ("two words", "'two words' is neither an embedded model"),
        ("owner/name?", "nor a Hugging Face id"),
    ],
)
def test_unknown_names(tmp_path: Path, model: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        locate(model, tmp_path)


@pytest.mark.parametrize("model", ["./small", "../small", "/models/small", "~/small", "a/b/c", "small/"])
def test_what_can_only_be_a_path_is_a_path(tmp_path: Path, model: str) -> None:
    assert locate(model, tmp_path).kind == "folder"


def test_an_id_is_looked_up_in_the_hubs_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    assert locate("owner/name", tmp_path).folder is None
    commit = "a" * 40
    repository = tmp_path / "hub" / "models--owner--name"
    snapshot = write_encoder(repository / "snapshots" / commit)
    assert locate("owner/name", tmp_path, commit).folder == snapshot
    assert locate("owner/name", tmp_path).folder is None
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    location = locate("owner/name", tmp_path)
    assert (location.folder, location.revision) == (snapshot, commit)
    assert locate("owner/name", tmp_path, "../../main").folder is None


def test_a_folder_comes_before_the_hub(tmp_path: Path) -> None:
    write_encoder(tmp_path / "owner" / "name")
    assert locate("owner/name", tmp_path).kind == "folder"


def test_the_embedded_model_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        UsageError, match=r"`pip install 'rageval-spec\[minilm\]'`, or `rageval-spec models fetch minilm`"
    ):
        locate("minilm", tmp_path)


def test_finding_files_imports_nothing_heavy(tmp_path: Path) -> None:
    folder = write_encoder(tmp_path / "small")
    program = (
        "import sys\nfrom pathlib import Path\nfrom rageval_spec.models.onnx import PLUGIN\n"
        "from rageval_spec.plugin import Context\n"
        f"node = PLUGIN.node_type(use='onnx', model={str(folder)!r})\n"
        "assert len(PLUGIN(node, Context('m')).inputs()) == 6\n"
        "heavy = {'numpy', 'onnx', 'onnxruntime', 'tokenizers', 'transformers', 'huggingface_hub', 'safetensors'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_path_whose_first_folder_exists_is_not_a_hub_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    write_encoder(tmp_path / "m" / "our-encoder")
    location = locate("m/our-encodr", tmp_path)
    assert (location.kind, location.folder) == ("folder", tmp_path / "m" / "our-encodr")
    with pytest.raises(UsageError, match="there is no folder 'm/our-encodr'; did you mean 'our-encoder'"):
        find_source(location)
    assert locate("n/our-encoder", tmp_path).kind == "hub"
    commit = "0" * 40
    cached = tmp_path / "hub" / "models--m--our-encodr" / "snapshots" / commit
    cached.mkdir(parents=True)
    assert locate("m/our-encodr", tmp_path, commit).kind == "hub"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no file 'nothing\.onnx'"):
        find_source(locate("nothing.onnx", tmp_path))


def test_a_model_without_a_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a model needs a name: minilm"):
        locate("", tmp_path)


def test_safetensors_need_a_config(tmp_path: Path) -> None:
    folder = write_encoder(tmp_path / "small")
    (folder / "config.json").unlink()
    with pytest.raises(UsageError, match=r"has no config\.json"):
        source_of(folder)


def test_an_incomplete_embedded_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EmbeddedModel, "list_folders", lambda _: (tmp_path,))
    (tmp_path / "model.safetensors").write_bytes(b"")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(
        UsageError, match=r"is incomplete, without tokenizer\.json; run `rageval-spec models fetch minilm`"
    ):
        find_source(locate("minilm", tmp_path))


def test_damage_of_an_embedded_model_names_the_command_that_fetches_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EmbeddedModel, "list_folders", lambda model: (tmp_path,) if model.name == "minilm" else ())
    assert say_fetch(tmp_path / "model.safetensors").startswith("run `rageval-spec models fetch minilm`")
    assert say_fetch(tmp_path.parent / "model.safetensors") == "download it again"


def test_settings_alone_are_no_tokenizer() -> None:
    assert choose_tokenizer(["tokenizer_config.json", "special_tokens_map.json", "config.json"]) == ()
    assert choose_tokenizer(["spiece.model", "tokenizer_config.json"]) == ("tokenizer_config.json", "spiece.model")
    assert choose_tokenizer(["spm.model", "tokenizer.json"]) == ("tokenizer.json",)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ({"foundation": "google/flan-t5-base"}, "google/flan-t5-base"),
        ({"foundation": "../secrets"}, None),
        ({"foundation": 3}, None),
        ({}, None),
        (None, None),
    ],
)
def test_a_foundation_is_a_model_of_the_hub(content: Any, found: str | None) -> None:
    names = ["model.safetensors", "config.json"]
    if found is None:
        with pytest.raises(UsageError, match="has no tokenizer"):
            choose_files(names, "m", find_config=lambda: content)
    else:
        assert choose_files(names, "m", find_config=lambda: content)[1] == found


def test_a_damaged_configuration_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(DataError, match=r"config\.json:1: is not JSON"):
        read_config(tmp_path / "config.json")


def test_the_message_says_whose_tokenizer_is_missing() -> None:
    with pytest.raises(UsageError, match=r"m: has no tokenizer: neither tokenizer\.json .* \(config\.json\)"):
        refuse_without_tokenizer(["config.json"], "m")
    with pytest.raises(UsageError, match=r"`hf download google/flan-t5-base tokenizer\.json --local-dir FOLDER`"):
        refuse_without_tokenizer(["config.json"], "m", "google/flan-t5-base")


def find_error(function: Callable[..., Any], *arguments: Any) -> RagevalError:
    """The error that a call ends with, as a user sees it."""
    with pytest.raises(RagevalError) as caught, translated():
        function(*arguments)
    return caught.value


def fail(error: Exception) -> None:
    raise error


def test_a_model_that_is_not_supported_is_an_error_of_use() -> None:
    error = find_error(find_architecture, {"model_type": "gpt2"})
    assert type(error) is UsageError
    assert isinstance(error.__cause__, UnsupportedModel)
    assert "or `use: sentence_transformers` (torch), or" in str(error)
    assert "use:" not in str(error.__cause__)


def test_a_damaged_file_is_an_error_of_data(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(b"half")
    error = find_error(read_weights, [path])
    assert type(error) is DataError
    assert isinstance(error.__cause__, DamagedFile)
    assert str(error) == f"{path}: is damaged or truncated (it has only 4 bytes); download it again"


def test_a_file_of_the_hubs_cache_is_downloaded_again_after_its_folder_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    repository = tmp_path / "models--owner--name"
    path = repository / "snapshots" / "0" / "model.safetensors"
    path.parent.mkdir(parents=True)
    save_file({"x": np.array([np.nan], np.float32)}, path)
    error = find_error(read_weights([path]).__getitem__, "x")
    advice = f"delete the folder {repository} and run again, which downloads it again"
    assert say_fetch(path) == advice
    assert str(error) == f"{path}: 'x' holds NaN or infinity; {advice}"


def test_a_damaged_file_that_says_what_to_do_gets_no_other_advice(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    assert str(find_error(read_weights, [path])) == (
        f"{path}: is only a pointer of Git LFS; run `git lfs pull` in its folder"
    )


@pytest.mark.parametrize("kind", CheckpointError.__subclasses__())
def test_every_kind_of_error_is_translated(kind: type[CheckpointError]) -> None:
    assert str(find_error(fail, kind("the words"))) == "the words"


@pytest.mark.parametrize("error", [DataError("ours"), OSError("of the system"), KeyError("x"), struct.error()])
def test_other_errors_pass(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, translated():
        fail(error)
    assert caught.value is error


def test_where_the_hubs_cache_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert find_hub_cache() == Path.home() / ".cache" / "huggingface" / "hub"
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert find_hub_cache() == Path("/x/huggingface/hub")
    monkeypatch.setenv("HF_HOME", "/h")
    assert find_hub_cache() == Path("/h/hub")
    monkeypatch.setenv("HF_HUB_CACHE", "/c")
    assert find_hub_cache() == Path("/c")


def find_damaged_modules(folder: Path) -> None:
    (folder / "modules.json").write_text("{")
    find_missing(folder)


def find_damaged_config(folder: Path) -> None:
    (folder / "config.json").write_text("{")
    find_missing(folder)


def list_data_outside(folder: Path) -> None:
    write_graph_with_data(folder / "model.onnx", "../secret")
    list_external_data(folder, "model.onnx")


def open_graph_with_data_outside(folder: Path) -> None:
    write_graph_with_data(folder / "model.onnx", "../secret")
    Session(folder / "model.onnx")


def measure_with_damaged_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}")
    measure_unread(folder, ["tokenizer.json"], ["привет"])


def find_replies_with_damaged_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}")
    find_reply_ids(folder, ["tokenizer.json"], {"yes": "1"})


def export_damaged_vocabulary(folder: Path) -> None:
    write_encoder(folder)
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.txt").write_bytes(b"\xff\n")
    source = find_source(locate(str(folder), Path()))
    assert source is not None
    export_model(source, source.read_configuration(), folder / "out", "fp32", Context("m").fingerprint)


def load_damaged_dense_layer(folder: Path) -> None:
    write_encoder(folder)
    write_json(folder / "modules.json", [TRANSFORMER, POOLING, DENSE])
    write_json(folder / "2_Dense" / "config.json", {"in_features": 8, "out_features": 3, "bias": True})
    values = {"linear.weight": np.full((3, 8), np.inf, np.float32), "linear.bias": np.zeros(3, np.float32)}
    save_file(values, folder / "2_Dense" / "model.safetensors")
    source = find_source(locate(str(folder), Path()))
    assert source is not None
    configuration = source.read_configuration()
    graph = provide_graph(source, configuration, "fp32", Context("m").fingerprint)
    load_encoder(source, configuration, graph, 1)


def write_graph_with_data(path: Path, location: str) -> None:
    """A graph whose one constant is in another file."""
    constant = onnx.TensorProto(name="c", dims=[1], data_type=1, data_location=onnx.TensorProto.EXTERNAL)
    constant.external_data.add(key="location", value=location)
    output = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1])
    node = helper.make_node("Identity", ["c"], ["y"])
    onnx.save_model(helper.make_model(helper.make_graph([node], "g", [], [output], [constant])), path)


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (find_damaged_modules, r"modules\.json:1: is not JSON"),
        (find_damaged_config, r"config\.json:1: is not JSON"),
        (list_data_outside, r"model\.onnx: has weights in '\.\./secret', which is outside of its folder"),
        (open_graph_with_data_outside, r"model\.onnx: has weights in '\.\./secret', which is outside of its folder"),
        (measure_with_damaged_tokenizer, r"tokenizer\.json: is not a tokenizer"),
        (find_replies_with_damaged_tokenizer, r"tokenizer\.json: is not a tokenizer"),
        (export_damaged_vocabulary, r"vocab\.txt: cannot be read as a vocabulary"),
        (
            load_damaged_dense_layer,
            r"2_Dense/model\.safetensors: 'linear\.weight' holds NaN or infinity; ",
        ),
    ],
)
def test_wherever_a_model_is_read_its_damaged_files_are_errors_of_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Path], None], message: str
) -> None:
    monkeypatch.setenv("RAGEVAL_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "model"
    folder.mkdir()
    with pytest.raises(DataError, match=message):
        read(folder)
