"""dslint: finds mistakes in DeepSpeed training runs before they cost GPU hours."""

__version__ = "0.1.0"
