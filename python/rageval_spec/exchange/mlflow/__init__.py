"""MLflow: reads traces, datasets and tables of runs, and writes runs and the assessments of traces.

MLflow's tracking server is asked through its REST API; no SDK is needed. What maps to what is in
`docs/exchange/mlflow.md`.
"""

from rageval_spec.exchange.mlflow.source import MlflowSource
from rageval_spec.exchange.mlflow.target import MlflowTarget

SOURCE = MlflowSource
TARGET = MlflowTarget
