"""What one rank does: its environment, the tiny model, the trial from reading to the step after a restore."""
