"""How models are found, made fit for ONNX Runtime, and run."""
