"""What the tools of exchange share: their contracts, requests, and the sending of values."""
