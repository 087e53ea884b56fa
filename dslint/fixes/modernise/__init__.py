"""What changed in DeepSpeed's config from release to release, one subject a file, and how a config follows."""
