"""How a model reads pairs, according to the spec's keys and to what is known of the model.

The table of known verifiers is imported for models that read pairs, and not for embedding models, which `validate`
looks up as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from onnx_from_checkpoints import NEEDS_REPLIES, writes_text
from rageval_spec.errors import UsageError

if TYPE_CHECKING:
    from onnx_from_checkpoints import Configuration


def choose_reading(
    found: Configuration, find_name: Callable[[], str | None], template: str | None, replies: Mapping[str, str] | None
) -> dict[str, Any]:
    """What to change in the configuration of a model's files, so that pairs are read as the model was trained to.

    Args:
        found: the configuration as in the files.
        find_name: gives the model's `published_name`.
        template: the spec's `pair_template`, which comes before what is known of the model.
        replies: the spec's `replies`, which do so too.
    """
    stated: dict[str, Any] = {}
    if template:
        from onnx_from_checkpoints import parse_template

        stated["pair_format"] = parse_template(template)
    if found.task != "classification" and not writes_text(found.encoder.get("architectures")):
        return stated
    from rageval_spec.inference.verifiers import find_reading

    known = find_reading(find_name(), found.encoder)
    replies = replies or (known.replies if known else {})
    if replies:
        stated |= {"task": "classification", "labels": tuple(replies), "replies": replies}
    if known is None or "pair_format" in stated:
        return stated
    lengths = [length for length in (known.max_length, found.positions) if length is not None]
    changes = {"pair_format": known.pair_format, "max_length": min(lengths, default=None)}
    if known.pair_format is None and changes["max_length"] == found.max_length:
        return stated
    return stated | {key: value for key, value in changes.items() if value is not None}


def check_pair_keys(
    model: str, replies: Mapping[str, str] | None, template: str | None, configuration: Configuration
) -> None:
    """Refuse keys on how pairs are read that do not fit a model's files."""
    writes = writes_text(configuration.encoder.get("architectures"))
    if replies is not None and not writes:
        raise UsageError(
            f"replies: is only for models that write text, such as T5ForConditionalGeneration, and {model} does not"
        )
    if configuration.task == "classification":
        return
    if template is not None and writes:
        raise UsageError(f"pair_template: {model} {NEEDS_REPLIES}")
    if configuration.pair_format is not None:
        raise UsageError(f"pair_template: is only for models that classify pairs of texts, which {model} does not")
