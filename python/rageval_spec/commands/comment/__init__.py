"""`rageval-spec comment`: one comment on a pull request or merge request, kept up to date."""
