"""Exchange with the tools that people already have: a file or a folder for each.

A module of this folder is named after the word that `import` and `export` use. It has the constants `SOURCE` (a
`TraceSource`: what can be read from the tool), `TARGET` (a `Target` or a `FileTarget`: what can be sent or written to
it), or both. The word of a folder with `source.py` is also a dataset and a system of specs, that of one with
`target.py` a report.
"""
