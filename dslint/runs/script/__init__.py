"""What a Python script does, as far as its text tells: its calls in order, with their values and guards."""
