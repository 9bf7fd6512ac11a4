"""Engines, which map a function over partitions; one file for each word of `use:`."""
