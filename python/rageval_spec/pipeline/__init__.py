"""Turns a frozen spec into an `Evaluation`, from the plan to the results."""
