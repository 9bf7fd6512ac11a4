"""Runs models in ONNX Runtime: finds their files, makes their graphs, and turns texts into outputs."""
