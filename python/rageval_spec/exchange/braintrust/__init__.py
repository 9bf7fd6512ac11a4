"""Braintrust: experiments, logs and datasets in; experiments, and scores of the same rows, out."""

from rageval_spec.exchange.braintrust.source import BraintrustSource
from rageval_spec.exchange.braintrust.target import BraintrustTarget

SOURCE = BraintrustSource
TARGET = BraintrustTarget
