"""Damaged indexes: how they are made, and a process that opens and searches them."""
