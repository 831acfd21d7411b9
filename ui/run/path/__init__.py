"""The path of a run as a diagram, its rounds and its steps."""
