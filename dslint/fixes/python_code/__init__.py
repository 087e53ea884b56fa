"""Edits of Python code."""
