"""The version, in a file without imports so that packaging can read it."""

__all__ = ["__version__"]

__version__ = "0.1.0"
