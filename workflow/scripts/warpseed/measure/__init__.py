"""What a run measures, and what is known about it: records, timing, floors, provenance, peers."""
