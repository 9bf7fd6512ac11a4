"""`python -m rageval_spec` is `rageval-spec`."""

from rageval_spec.cli import main

main()
