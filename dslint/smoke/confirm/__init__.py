"""Whether what a finding predicts happens in the user's own run, and whether the run trains without it."""
