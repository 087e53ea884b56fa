"""Smoke: a few real training steps on real DeepSpeed; the only code that imports torch, and in child processes."""
