"""Edits of YAML text."""
