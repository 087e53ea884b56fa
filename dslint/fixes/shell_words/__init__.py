"""Edits of the words of shell scripts."""
