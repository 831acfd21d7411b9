"""A run as a link or a file, and opening one."""
