"""Judging: rules are held against the facts of a run."""
