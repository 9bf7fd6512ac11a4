"""The command `history`: the records of evaluations, listed, drawn, exported and pruned."""
