"""Methods that give verdicts or grades: one file per word."""
