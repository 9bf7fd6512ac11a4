"""How an evaluation is shown: one file per word."""
