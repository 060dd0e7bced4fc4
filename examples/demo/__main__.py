"""`python -m examples.demo [DIRECTORY]`: the demo from a checkout, with whichever installation of Limnos runs it.

May import the demo. It needs the extras `server`, `spark` and `demo`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from examples.demo.run import main

if __name__ == "__main__":
    sys.exit(main(Path(*(sys.argv[1:2] or ["demo-out"]))))
