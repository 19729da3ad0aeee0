"""The mistakes that warpseed reports to its user.

Each of these is raised with one clear sentence: what was found, where, what was expected, and what to do.
The command line and the rule scripts print that sentence and no traceback.
"""

__all__ = [
    "ConfigError",
    "DeviceError",
    "DownloadError",
    "IndexFormatError",
    "InputError",
    "MemoryLimitError",
    "PeerError",
    "WarpseedError",
]


class WarpseedError(Exception):
    """Base of every error that a user can mend; ``str()`` of it is one sentence."""


class InputError(WarpseedError):
    """A sequence file, a query or an argument that cannot be used as it is."""


class IndexFormatError(WarpseedError):
    """An index folder that is incomplete, damaged, of another version or of another reference."""


class MemoryLimitError(WarpseedError):
    """A step that needs more memory, of the host or of the device, than there is."""


class DeviceError(WarpseedError):
    """A device that was asked for and does not answer, or lacks something it needs."""


class DownloadError(WarpseedError):
    """A reference that could not be downloaded, or that is not what it should be."""


class ConfigError(WarpseedError):
    """A configuration value that is missing, misspelt or out of its range."""


class PeerError(WarpseedError):
    """Another tool that is missing, failed, or printed something unexpected."""
