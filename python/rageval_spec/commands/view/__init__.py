"""The command `view`: the pages of the history in a browser, on this machine only."""
