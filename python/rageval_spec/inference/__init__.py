"""Finds models, converts them for ONNX Runtime, and runs them."""
