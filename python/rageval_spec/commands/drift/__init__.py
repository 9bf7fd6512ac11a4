"""`rageval-spec drift`: whether a judge has changed since answers were frozen, or judges by the order of what it sees."""
