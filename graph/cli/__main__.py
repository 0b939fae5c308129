"""`python -m graph.cli` is the command `circadian`."""

import sys

from graph.cli.app import main

sys.exit(main())
