"""What goes out: rows, their order and digest, columns, and lines of text."""
