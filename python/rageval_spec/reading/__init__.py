"""Reads files with rows into the tables of a dataset or a run.

| module | job |
|---|---|
| files | from a path to lines of text, compressed or not |
| records | columns to read, and rows with their places |
| json_lines, delimited, parquet | from a path to records |
| json_documents, yaml_documents, workbooks | from a path to rows with their places, and what a file says of itself |
| row_sources | a file of questions or answers: its format, the tool that wrote it, its rows |
| tool_layouts, unfolding | how other tools' files are recognised, and where their parts are |
| layouts | known column names, and the checks that turn records into tables |
"""
