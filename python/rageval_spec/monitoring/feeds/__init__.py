"""Where a monitor gets traces from: growing files, spans that are sent to it, and the tools that record traces."""
