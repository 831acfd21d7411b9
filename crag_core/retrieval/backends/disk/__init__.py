"""An index in a folder of this machine."""
