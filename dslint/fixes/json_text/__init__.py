"""Edits of JSON and Hjson text."""
