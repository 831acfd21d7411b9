"""PDF: its letters through PDFium, lines by their positions, rows of tables with the headers of their cells."""
