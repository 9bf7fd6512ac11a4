"""Any JSON, often with the keys of replies."""

from __future__ import annotations

from hypothesis import strategies as st

KEYS = st.sampled_from(
    ["answer", "contexts", "context_ids", "text", "id", "score", "usage", "prompt_tokens", "cost", "choices", "message"]
)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=3), inner, max_size=5),
)
