"""The readable, slow truth: brute force in plain Python and NumPy, for small inputs."""
