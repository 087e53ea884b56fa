"""Ranks of one run among each other: which still works, where each stands, which failed first."""
