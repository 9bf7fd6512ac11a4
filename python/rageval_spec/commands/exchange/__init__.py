"""The work of `import` and `export`."""
