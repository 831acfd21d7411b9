"""Choosing thresholds from grades recorded once, and how far the choice can be trusted. Pure."""
