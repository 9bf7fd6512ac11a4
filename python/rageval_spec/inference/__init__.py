"""Runs models in ONNX Runtime: finds their files, makes their graphs, and turns texts into outputs.

What a user asks for and cannot have is a `UsageError`. A file that is missing, damaged or another model's is a
`DataError`. What fails on this machine, such as a download, a full disk or a lack of memory, is a `RagevalError`.
"""
