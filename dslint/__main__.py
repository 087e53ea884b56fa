"""`python -m dslint`."""

import sys

from dslint.cli import main

if __name__ == "__main__":
    sys.exit(main())
