"""Labels: what people judged about answers. One file for each word of `use:` under `labels:`."""
