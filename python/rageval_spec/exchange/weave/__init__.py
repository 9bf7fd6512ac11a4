"""Weave: answers and values as a dataset of a project. Only written; its own package is not needed."""

from rageval_spec.exchange.weave.target import WeaveTarget

TARGET = WeaveTarget
