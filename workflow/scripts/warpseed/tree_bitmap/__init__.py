"""K-mers in a stream, matched with a dictionary that grows on the way (paper 003)."""
