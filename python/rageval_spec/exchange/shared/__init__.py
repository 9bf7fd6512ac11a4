"""What the tools of exchange share: their contracts, rows as traces, values, and delivery."""
