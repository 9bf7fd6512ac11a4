"""Blocks of a spec become nodes: a module for each block, with its checks."""
