"""`rageval-spec demo`: an evaluation of an assistant before and after a change that breaks one question."""
