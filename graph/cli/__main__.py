"""`python -m graph.cli` is the command `circadian`."""

from __future__ import annotations

import sys

from graph.cli.app import main

sys.exit(main())
