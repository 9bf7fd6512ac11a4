"""Turns a frozen spec into an `Evaluation`; each module is one stage."""
