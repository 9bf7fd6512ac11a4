"""OTLP, the protocol of OpenTelemetry: spans from bytes, files and requests, and bytes from spans and values."""
