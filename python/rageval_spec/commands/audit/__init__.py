"""The command `audit`: what is wrong with the test sets of a spec."""
