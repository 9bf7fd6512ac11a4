"""ONNX graphs and tokenizers from the files of a checkpoint, without torch.

The package knows nothing of evaluations. Its errors are in `errors`.
"""
