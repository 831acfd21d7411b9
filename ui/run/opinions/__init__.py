"""What another evaluator says of the same chunks."""
