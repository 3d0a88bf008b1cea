# Everything from a fresh clone: Python 3.11 or newer and make are enough.
# Paths are relative and quoted, because the clone may lie in a directory with spaces in its name.

PYTHON ?= python3
ARGS ?=
# Tests in their own order, which is the longest first (tests/conftest.py).
PARALLEL = -n auto --dist loadgroup --no-loadscope-reorder
MAKEFLAGS += --no-print-directory
# Bytecode is kept: the suite starts hundreds of Pythons, and without it each compiles every module that it imports.
export PYTHONDONTWRITEBYTECODE :=
.DEFAULT_GOAL := help
.PHONY: help demo test quick deep everywhere versions sim lint format interop bench site wheels lock clean environment interop-environment site-environment python

help:
	@echo 'make demo        a lake from nothing: tables, commits, time travel'
	@echo 'make test        lint, types and the whole suite but interop (ARGS="-k name" goes to pytest)'
	@echo 'make quick       the tests that need neither a JVM nor patience'
	@echo 'make deep        the suite with every case of what make test has a sample of, which takes hours (ICEFIELD_DEEP=1)'
	@echo 'make everywhere  all that needs Spark again, in executor processes and over Spark Connect'
	@echo 'make versions    tests with the lowest and with the newest versions of dependencies (PYTHON=python3.14, too)'
	@echo 'make sim         100,000 simulated histories of commits that meet and fail (ARGS="--seed 123" shows one)'
	@echo 'make lint        ruff and mypy only; make format mends what ruff can mend'
	@echo 'make interop     the same tables read and written by stock Spark with the Iceberg jars'
	@echo 'make bench       the measurements'
	@echo 'make site        the docs and the API reference as a static site in build/site, links checked'
	@echo 'make wheels      a wheel for each platform and the source archive, in dist'
	@echo 'make lock        resolve the lock files again (ARGS=--upgrade for newer versions)'
	@echo 'make clean       remove what make built'
	@echo 'PYTHON=python3.12 chooses the interpreter (3.11 or newer)'

demo: environment
	@.venv/bin/icefield demo $(ARGS)

# The suite runs even where lint fails: one run shows everything. Lint takes one core for as long as mypy has no cache, so
# that it runs beside the suite; what it finds is shown as one block, and the closing line of pytest comes last.
test: environment
	@status=0; \
	{ found=$$($(MAKE) lint 2>&1) || { printf '\nlint:\n%s\n' "$$found"; false; }; } & lint=$$!; \
	.venv/bin/python -m pytest -m 'not interop' $(PARALLEL) --durations=20 $(ARGS) || status=1; \
	wait $$lint || { echo 'lint failed, see above' >&2; status=1; }; \
	exit $$status

quick: environment
	@ICEFIELD_EFFORT=0.1 .venv/bin/python -m pytest -m 'not interop and not spark and not slow' $(PARALLEL) $(ARGS)

deep: environment
	@ICEFIELD_DEEP=1 .venv/bin/python -m pytest -m 'not interop' $(PARALLEL) --durations=20 $(ARGS)

# One place after the other: each has JVMs of its own.
everywhere: environment
	@status=0; \
	for place in cluster connect; do \
		echo "Spark: $$place"; \
		ICEFIELD_SPARK=$$place .venv/bin/python -m pytest -m 'spark and not interop' $(ARGS) || status=1; \
	done; \
	exit $$status

# Environments of their own in build/, by the interpreter that PYTHON names.
versions: python
	@"$(PYTHON)" -m scripts.versions $(ARGS)

sim: environment
	@.venv/bin/python -m tests.sim $(ARGS)

lint: environment
	@status=0; \
	.venv/bin/ruff check --quiet . || status=1; \
	.venv/bin/ruff format --quiet --check . || { echo 'some files are not formatted: make format'; status=1; }; \
	.venv/bin/python -m mypy || status=1; \
	exit $$status

format: environment
	@.venv/bin/ruff check --quiet --fix . ; .venv/bin/ruff format .

interop: environment interop-environment
	@.venv/bin/python -m pytest -m interop tests/interop $(ARGS)

bench: environment
	@.venv/bin/python -m benchmarks $(ARGS)

site: environment site-environment
	@.venv-site/bin/python scripts/build_site.py

wheels: environment
	@.venv/bin/python -m scripts.build_wheels $(ARGS)

lock: python
	@"$(PYTHON)" scripts/lock.py $(ARGS)

clean:
	rm -rf .venv .venv-interop .venv-site dist build .mypy_cache .pytest_cache .ruff_cache .hypothesis src/icefield/codec/avro/*.so
	find src tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +

environment: python
	@"$(PYTHON)" scripts/environment.py .venv requirements/dev.lock --editable

# The wheel with the jars says that it is for Python 3.12 and older, but there is no Python in it.
interop-environment: python
	@"$(PYTHON)" scripts/environment.py .venv-interop requirements/interop.lock --ignore-requires-python

site-environment: python
	@"$(PYTHON)" scripts/environment.py .venv-site requirements/site.lock

python:
	@"$(PYTHON)" -c 'import sys; v = sys.version_info[:2]; sys.exit(v < (3, 11) and "icefield needs Python 3.11 or newer, and $(PYTHON) is %d.%d: name another one with make PYTHON=..." % v)'
