"""The Policies page."""
