"""Asks endpoints over HTTP: addresses, pacing, dialects, calls, prices, asking, and reading replies."""
