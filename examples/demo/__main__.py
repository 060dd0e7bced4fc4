# SPDX-License-Identifier: Apache-2.0
"""`python -m examples.demo [DIRECTORY]`: the demo from a checkout, with any installation of Limnos.

May import the demo. It needs the extras `server`, `spark` and `demo`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from examples.demo.run import main

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m examples.demo", description="Run the demonstration on real flight data."
    )
    parser.add_argument(
        "directory", nargs="?", type=Path, default=Path("demo-out"), help="Where the demo keeps everything."
    )
    sys.exit(main(parser.parse_args().directory))
