"""What the pages are made of: session state in `state`, finished things drawn by `render_*`."""
