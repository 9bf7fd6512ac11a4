"""What the datasets share: rows, tables and traces."""
