"""The index that every system searches: text, suffix array, k-mer table, and both BWTs in the papers' layout.

What it is: `layout` (the arrays as searches take them), `parts` (which arrays a part has, how long they are), `text`.

How it is made, in the order in which it is: `build` (a reference is read, its text packed, memory checked) has the
parts made by `cpu_build` or `gpu_build`. These call `suffix_array`, which deals suffixes out (`suffix_buckets`), sorts
a third of them by letters (`suffix_letters`), and induces the others, which begin one base before (`suffix_induction`).
Where ties are left all are sorted by letters, and what is tied then along the text (`suffix_chains`) and by ranks
(`suffix_ranks`). So it gets the lookup table, too (`table`). A text that repeats is cut into `phrases`, of which the
different ones (`parse`, `phrase_dictionary`) are sorted so, and all suffixes by what follows these (`suffix_phrases`).
Then comes `bwt`. On a GPU `gpu_suffix_array`, `gpu_suffix_letters`, `gpu_suffix_ranks`, `gpu_table`, `gpu_bwt` and, for
the reversed text, `gpu_text` make the same, and `gpu_rows` rows of both strands. `tags` of rows are made by the CPU,
and read by its search. `make` makes an index in a folder: each array is written when it is made, tags last, and then
the folder gets its name.

How it is kept: `store` (saved, opened, parts added), `target` (the folder), `manifest` (index.json), `npy`, `checksum`,
`checks` (of values).

How it is searched: `search` and `locate` on the papers' BWTs, `buckets` and `crowding` on the table and the suffix
array, `tagged` (rows as GPUs read them), `device` (what lies on a GPU), `binned` and `bins` (paper 002's index).
"""
