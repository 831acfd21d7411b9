"""One file a shape of log; each reads rows into records, or tells why not."""
