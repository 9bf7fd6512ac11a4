"""Exchange with the tools that people already have: a file or a folder for each.

A module of this folder is named after the word that `import`, `export`, `systems:`, `datasets:` and `reports:` use. It
has the constants `SOURCE` (a `TraceSource`: what can be read from the tool), `TARGET` (a `Target` or a `FileTarget`:
what can be sent or written to it), or both.
"""
