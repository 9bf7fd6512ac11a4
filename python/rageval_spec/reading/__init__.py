"""Files of rows and what they are called: from a path to the tables of a dataset or a run.

| module | job |
|---|---|
| files | a path to lines of text, whatever the compression |
| records | columns to ask for; rows with the place each stands at |
| json_lines, delimited, parquet | a path to records |
| layouts | known names of columns, and the checks that turn records into tables |
"""
