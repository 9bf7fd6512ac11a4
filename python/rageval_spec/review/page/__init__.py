"""The review page: one HTML file in which people label answers."""
