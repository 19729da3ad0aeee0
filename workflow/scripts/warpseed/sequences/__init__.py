"""What comes in: files, FASTA and FASTQ, references, queries, simulated data."""
