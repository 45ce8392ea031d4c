"""`python -m limpet.cli` is `limpet`."""

import sys

from limpet.cli import main

sys.exit(main())
