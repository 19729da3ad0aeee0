"""The index that every system searches: text, suffix array, k-mer table, and both BWTs in the papers' layout."""
