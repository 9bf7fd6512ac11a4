"""Records of earlier evaluations."""
