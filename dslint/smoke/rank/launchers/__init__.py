"""The real launchers, up to where they would start a process."""
