"""Reads files with rows into the tables of a dataset or a run.

| module | job |
|---|---|
| files | from a path to lines of text, compressed or not |
| records | columns to read, and rows with their places |
| json_lines, delimited, parquet | from a path to records |
| layouts | known column names, and the checks that turn records into tables |
"""
