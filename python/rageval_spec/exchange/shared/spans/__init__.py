"""Spans of OpenTelemetry and OpenInference: from bytes, files and requests, and back."""
