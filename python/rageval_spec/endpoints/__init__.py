"""Asks endpoints over HTTP: connections, pacing, tries, dialects, and replies that can be read."""
