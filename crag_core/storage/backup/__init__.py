"""A home folder in one file, taken while the application runs, and back."""
