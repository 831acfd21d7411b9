"""OpenDocument text, sheets and slides."""
