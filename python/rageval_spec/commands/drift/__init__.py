"""`rageval-spec drift`: whether a judge has changed since answers were frozen."""
