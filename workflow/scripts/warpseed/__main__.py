"""``python -m warpseed``."""

import sys

from warpseed.cli import main

sys.exit(main())
