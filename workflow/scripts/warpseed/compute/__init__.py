"""How code runs: compilation, bit arithmetic, threads, the machine, the GPU."""
