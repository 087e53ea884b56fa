"""The examples of the rules on real DeepSpeed."""
