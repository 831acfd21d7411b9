"""Uploaded files, folders and ZIP archives as single files with safe names."""
