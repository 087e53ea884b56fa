"""The user's own script: run under the launcher, followed from the inside, ended after a few steps."""
