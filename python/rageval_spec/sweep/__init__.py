"""All combinations of the values of axes, compared with one another."""
