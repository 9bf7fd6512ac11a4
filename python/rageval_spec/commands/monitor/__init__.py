"""`monitor`: production, watched."""
