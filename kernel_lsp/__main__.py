"""`python -m kernel_lsp`: the command line."""

import sys

from kernel_lsp.cli.main import main

sys.exit(main())
