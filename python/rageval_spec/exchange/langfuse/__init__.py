"""Langfuse: traces, scores and datasets in; scores and dataset runs out."""

from rageval_spec.exchange.langfuse.source import LangfuseSource
from rageval_spec.exchange.langfuse.target import LangfuseTarget

SOURCE = LangfuseSource
TARGET = LangfuseTarget
