"""Pages into chunks: LlamaIndex's sentence splitter, with limits on the work. Pure."""
