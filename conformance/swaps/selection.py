# SPDX-License-Identifier: Apache-2.0
"""Which tests may notice a changed module: those that mirror it, import it, lie beside these, or mirror what imports
it, the nearest first.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.house import tidy
from tests.room_tests import mentions, test_modules

FAR: Final = 3
"""How many imports away a module may be whose tests are run."""
_ENGINES: Final = ("spark", "docker", "nodes.process", "integration.live", "pytest.mark.heavy")
"""Words of modules whose tests start servers or Java, which take long."""


class TestSelection:
    """The tests of modules of a tree, by imports."""

    __test__ = False

    def __init__(self, root: Path) -> None:
        graph = mentions(root)
        self._root, self._modules = root, set(graph)
        self._importers: dict[str, set[str]] = {}
        for module, names in graph.items():
            for name in names:
                self._importers.setdefault(name, set()).add(module)
        self._tests = [each for each in test_modules() if not each.startswith(("tests/house/", "tests/conformance/"))]
        self._named = {each: self._names_of(each) for each in self._tests}

    def stages(self, path: str) -> Iterator[list[str]]:
        """Yield groups of test modules for a module given by its path, the nearest and the fastest first."""
        chosen: set[str] = set()
        for group in self._groups(_module_of(path)):
            slow = {each for each in group - chosen if self._is_slow(each)}
            yield from filter(None, (sorted(group - chosen - slow), sorted(slow)))
            chosen |= group

    def _groups(self, module: str) -> Iterator[set[str]]:
        ring, seen = {module}, {module}
        folder = "/".join(["tests", *module.split(".")[1:-1], ""])
        for distance in range(FAR + 1):
            yield {each for each in self._tests for user in ring if _mirrors(each, user)}
            if distance < FAR:
                yield {each for each in self._tests if self._named[each] & ring}
            if distance == 0:
                yield {each for each in self._tests if each.rpartition("/")[0] + "/" == folder}
            ring = {user for each in ring for user in self._importers.get(each, ())} - seen
            seen |= ring
        yield {each for each in self._tests if each.startswith(folder.rpartition("/")[0].rpartition("/")[0] + "/")}

    def _names_of(self, test: str) -> set[str]:
        text = (self._root / test).read_text(encoding="utf-8")
        return tidy.mentioned_modules(tidy.SourceFile(test, text)) & self._modules

    def _is_slow(self, test: str) -> bool:
        text = (self._root / test).read_text(encoding="utf-8")
        return test.startswith(("tests/integration/", "tests/nodes/", "tests/faults/")) or any(
            each in text for each in _ENGINES
        )


def _module_of(path: str) -> str:
    parts = path.removeprefix("src/").removesuffix(".py").split("/")
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _mirrors(test: str, module: str) -> bool:
    """Return whether a test module lies where a module's tests do: `a/test_b.py` and `a/test_b_of_c.py` of `a.b`, and
    all below `a/b/`.
    """
    *folders, name = module.split(".")[1:]
    *parts, file = test.removeprefix("tests/").removesuffix(".py").split("/")
    subject = file.removeprefix("test_")
    if parts[: len(folders) + 1] == [*folders, name]:
        return len(folders) > 0
    return parts == folders and (subject == name or subject.startswith(f"{name}_"))
