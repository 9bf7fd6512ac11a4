"""The pages of `rageval-spec view`, served to this machine only: records, comparisons, labels and judgements."""
