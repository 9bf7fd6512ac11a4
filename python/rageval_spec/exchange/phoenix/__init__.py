"""Arize Phoenix: reads the traces of a project or a dataset, and writes values as annotations or as experiments.

Phoenix is asked through its REST API; no SDK is needed. What maps to what is in `docs/exchange/phoenix.md`.
"""

from rageval_spec.exchange.phoenix.source import PhoenixSource
from rageval_spec.exchange.phoenix.target import PhoenixTarget

SOURCE = PhoenixSource
TARGET = PhoenixTarget
