"""The immutable records of a run, a module for each stage that makes them."""
