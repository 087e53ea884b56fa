"""What a project has written down for dslint: `[tool.dslint]` in pyproject.toml, or dslint.toml."""
