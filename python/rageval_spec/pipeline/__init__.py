"""From a frozen spec to an `Evaluation`, a module a stage."""
