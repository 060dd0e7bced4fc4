# SPDX-License-Identifier: Apache-2.0
"""Write the Python code of `proto/` into `src/limnos/model/proto`; run it after every change of a `.proto` file.

    python scripts/generate_proto.py [--into DIRECTORY]

Needs grpcio-tools (a development dependency). May import nothing of the product. A test runs it into a temporary
directory and compares, so that the committed code always matches the definitions.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from grpc_tools import protoc  # type: ignore[import-untyped]

HOME = Path(__file__).resolve().parent.parent
SOURCE = HOME / "proto"
TARGET = HOME / "src" / "limnos" / "model" / "proto"
PACKAGE = "limnos.model.proto"
HEADER = "# Written by scripts/generate_proto.py from proto/; do not edit.\n# ruff: noqa\n# mypy: ignore-errors\n"


def generate(into: Path) -> list[Path]:
    """Compile every definition below `proto/` into `into`; returns the files written, sorted."""
    names = sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.proto"))
    well_known = Path(protoc.__file__).parent / "_proto"
    flags = [f"--proto_path={SOURCE}", f"--proto_path={well_known}", f"--python_out={into}", f"--pyi_out={into}"]
    into.mkdir(parents=True, exist_ok=True)
    if protoc.main(["protoc", *flags, *names]) != 0:
        raise SystemExit("protoc refused the definitions; its message stands above")
    written = sorted(path for pattern in ("*_pb2.py", "*_pb2.pyi") for path in into.rglob(pattern))
    for path in written:
        path.write_text(_placed(path.read_text("utf-8")), "utf-8")
    return written


def _placed(text: str) -> str:
    """Replace the imports of generated code, which use the definition's package, by those of its location."""
    return HEADER + text.replace("from limnos.v1 import", f"from {PACKAGE}.limnos.v1 import")


def main(arguments: list[str]) -> None:
    """Generate, and print the written files."""
    parser = argparse.ArgumentParser(description="Write the Python code of proto/.")
    parser.add_argument("--into", type=Path, default=TARGET, help="directory to write into")
    for path in generate(parser.parse_args(arguments).into):
        print(path.relative_to(HOME) if path.is_relative_to(HOME) else path)


if __name__ == "__main__":
    main(sys.argv[1:])
