"""The sections of the report of one run."""
