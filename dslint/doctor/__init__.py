"""Checks the environment's own traps without running a training: `dslint doctor`."""
