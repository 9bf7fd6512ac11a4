"""Datadog, by the DogStatsD protocol of its agent."""

from rageval_spec.exchange.dogstatsd.target import DogstatsdTarget

TARGET = DogstatsdTarget
