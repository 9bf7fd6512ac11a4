"""TruLens: reads the records and ground truths of its SQLite database, and writes feedback into it.

The database is opened with Python's own `sqlite3`; no SDK is needed. What maps to what is in
`docs/exchange/trulens.md`.
"""

from rageval_spec.exchange.trulens.source import TrulensSource
from rageval_spec.exchange.trulens.target import TrulensTarget

SOURCE = TrulensSource
TARGET = TrulensTarget
