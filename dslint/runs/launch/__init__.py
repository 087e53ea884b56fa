"""Launch commands: which launcher starts which script, with what arguments, on how many ranks."""
