"""A look at the numbers: windows, levels, changes from a baseline, and what is behind them."""
