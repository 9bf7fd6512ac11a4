//! Cosine similarity and exact top-k over row-major float matrices.
