"""Files of strangers are read, cut and drawn in processes of their own, within limits."""
