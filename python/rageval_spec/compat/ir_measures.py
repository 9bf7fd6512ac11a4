"""A provider for `ir_measures`: its measures, computed by our kernels.

    import ir_measures
    from ir_measures import nDCG, AP
    from rageval_spec.compat.ir_measures import RagevalProvider

    RagevalProvider().calc_aggregate([nDCG @ 10, AP], qrels, run)

Importing this module registers the provider as `ir_measures.providers.registry["rageval_spec"]`.
"""

from __future__ import annotations

from ir_measures import providers
from ir_measures.providers.pytrec_eval_provider import PytrecEvalProvider

from rageval_spec.compat import pytrec_eval


class RagevalProvider(PytrecEvalProvider):
    """ir_measures' own translation of its measures into trec_eval's, over our drop-in."""

    NAME = "rageval_spec"

    def initialize(self) -> None:
        """Use the drop-in where ir_measures uses pytrec_eval."""
        self.pytrec_eval = pytrec_eval

    def install_instructions(self) -> str:
        """How to install what it needs."""
        return "pip install rageval-spec"


providers.register(RagevalProvider())  # type: ignore[no-untyped-call]
