"""LangSmith: runs, feedback and datasets in; feedback and experiments out."""

from rageval_spec.exchange.langsmith.source import LangSmithSource
from rageval_spec.exchange.langsmith.target import LangSmithTarget

SOURCE = LangSmithSource
TARGET = LangSmithTarget
