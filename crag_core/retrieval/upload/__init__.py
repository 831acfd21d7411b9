"""Files, folders and ZIP archives as people give them, under safe names."""
