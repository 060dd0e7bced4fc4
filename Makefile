# Limnos: one word for each task. Needs python3 (3.11 or later), make and a POSIX shell; installs the rest into .venv.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:
.PHONY: help setup console-shots demo test test-changed test-full test-without test-orphans test-maintenance test-fast test-searches test-integration test-spark lint fix docs site dist release bench bench-peers conformance jars

BIN := .venv/bin
STAMP := .venv/.limnos-setup
PYTEST := $(BIN)/python -m pytest
# Tests wait for servers, engines and disks for a third of their time: one process more than cores.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
ARGS ?=
# A selection may be empty (with ARGS="-k …"): pytest then exits with 5.
NONE_IS_FINE := [ $$? -eq 5 ]
CODE := $(wildcard src tests bench conformance scripts examples)

# A caller's own Python settings must not leak into the environment of the project.
unexport PYTHONPATH
unexport PYTHONHOME
unexport VIRTUAL_ENV
# Tests start hundreds of processes. Without written bytecode each compiles all its modules: 4.2 s of CPU for a server, not 1.3.
unexport PYTHONDONTWRITEBYTECODE

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' Makefile

setup: $(STAMP) ## make .venv with the pinned versions of everything (again only when the lock changes)

$(STAMP): pyproject.toml uv.lock scripts/setup.sh scripts/get_uv.py
	@sh scripts/setup.sh
	@touch $(STAMP)

jars: setup ## fetch the Spark jar once, by its pinned SHA-256
	@$(BIN)/limnos spark jars

demo: setup ## start a server, run the Spark pipeline on real data, show access at work; ends with a report
	@$(BIN)/limnos demo $(ARGS)

console-shots: setup ## pictures of the console's pages, in light and dark and three widths (needs Chromium)
	@$(BIN)/python scripts/console_shots.py $(ARGS)

test: setup jars ## all suites at once, of large families a seventh, another one for each commit; ROOM=lance: all of one room
ifdef ROOM
	modules=$$($(BIN)/python -m tests.room_tests $(ROOM)) && $(PYTEST) -q -n $(WORKERS) --dist loadgroup $(ARGS) $$modules
else
	$(PYTEST) -q -n $(WORKERS) --dist loadgroup --sampled --ignore tests/house $(ARGS) || $(NONE_IS_FINE)
endif

test-changed: setup jars ## every test of the rooms that differ from main
	@modules=$$($(BIN)/python -m tests.room_tests --changed) && if [ -z "$$modules" ]; then echo "no room differs from main"; \
	else $(PYTEST) -q -n $(WORKERS) --dist loadgroup $(ARGS) $$modules; fi

test-without: setup jars ## a sample of the tests on a copy of the tree without a room: ROOM=search; else small ones without two rooms
	$(BIN)/python scripts/without_room.py $(or $(ROOM),--turn) $(ARGS)

test-orphans: setup ## 10,000 random steps of orphan removal on each store: no live file is lost
	@LIMNOS_TEST_ORPHANS=10000 $(BIN)/python -m pytest -q -s -p no:xdist tests/rooms/maintenance/services/orphans/test_model.py

test-maintenance: setup ## 10,000 random steps of all maintenance with 200 kills on each store, and the planted bugs
	@LIMNOS_TEST_MAINTENANCE=10000 $(BIN)/python -m pytest -q -s -p no:xdist tests/rooms/maintenance/services/test_all_maintenance.py
	@$(BIN)/python -m pytest -q -s -p no:xdist tests/rooms/maintenance/services -k planted_bugs

test-full: setup jars ## for the night: every test, 20,000 random stories of increments, and how long each folder took
	LIMNOS_TEST_INCREMENTS=20000 LIMNOS_TEST_PLANTED=1000000 $(PYTEST) -q -n $(WORKERS) --dist loadgroup --times $(ARGS) || $(NONE_IS_FINE)

test-searches: setup ## 2,000 random lakes, in each of which searches find what a plain model has and name no hidden object
	LIMNOS_TEST_SEARCHES=2000 $(PYTEST) -q -n $(WORKERS) --dist worksteal tests/rooms/search/services/test_search_model.py tests/rooms/search/services/test_visible_nodes.py $(ARGS)

test-fast: setup ## tests that start nothing
	$(PYTEST) -q -n $(WORKERS) --dist worksteal -m "not integration and not spark" $(ARGS) || $(NONE_IS_FINE)

test-integration: setup ## tests that start servers or PostgreSQL
	$(PYTEST) -q -n $(WORKERS) --dist loadfile -m "integration and not spark" $(ARGS) || $(NONE_IS_FINE)

test-spark: setup jars ## tests that need Spark, in one process
	$(PYTEST) -q -p no:xdist -m spark $(ARGS) || $(NONE_IS_FINE)

lint: setup ## ruff, mypy --strict, calls in tests, import contracts, tidy
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy src/limnos tests/house scripts examples/demo
	$(BIN)/mypy --config-file tests/mypy.ini $(filter-out src scripts,$(CODE))
	$(BIN)/lint-imports --no-logo
	$(PYTEST) -q -p no:xdist tests/house

fix: setup ## let ruff mend and format what it can, and add the licence's line to new files
	@$(BIN)/python scripts/add_licence.py
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

docs: setup ## write the tables of docs/reference (errors, metrics, settings, kinds and others) and openapi/ from the code
	@$(BIN)/python scripts/generate_docs.py
	@$(BIN)/python scripts/generate_openapi.py

site: setup ## build the documentation site that a server of this checkout shows at /docs, and print its size
	@$(BIN)/python scripts/build_site.py

dist: setup ## build wheel, sdist and bill of materials into dist/, twice, and compare the bytes
	@$(BIN)/python -m scripts.release build

release: setup ## check tree, versions and changelog, build as `dist`, and tag the commit
	@$(BIN)/python -m scripts.release tag

bench: setup ## CPU per request, requests per second and latencies, per operation and store
	@$(BIN)/python -m bench $(ARGS)

bench-peers: setup ## Limnos beside Iceberg's reference server with 1 K, 100 K and 1 M objects: the table of benchmarks.md
	@$(BIN)/python -m bench.peers $(ARGS)

conformance: setup jars ## foreign test suites and clients against a running server
	@conformance/run $(ARGS)
