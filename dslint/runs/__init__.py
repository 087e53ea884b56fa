"""Linking: documents and options become runs, and runs have facts."""
