# What a person types. Everything is installed from this folder into one virtual environment, at the pinned versions.
#
#   make demo                                          see it work
#   make test                                          the whole test suite
#   make check                                         every gate that a change has to pass
#   make bench                                         how fast it is, beside its peers
#   make test PYTHON=python3.13 VENV=.venv-3.13        the suite on another Python

PYTHON  ?= python3
VENV    ?= .venv
WORKERS ?= 2
MEASURE ?= yes
ARGS    ?=

BIN        := $(VENV)/bin
PIP        := $(BIN)/python -m pip install --quiet --constraint constraints.txt
DEMO_DONE  := $(VENV)/.installed-demo
DEV_DONE   := $(VENV)/.installed-dev
BENCH_DONE := $(VENV)/.installed-bench
MEASURED   := $(VENV)/.coverage-of-the-suite

COVER       := $(if $(filter yes,$(MEASURE)),--cov --cov-report=)
WHOLE_SUITE := $(and $(COVER),$(if $(strip $(ARGS)),,yes))

PYTHON_CODE := openenv_gym server envs wrappers benchmarks examples tests
CHECKED     := $(wildcard $(PYTHON_CODE))
SOURCES      = $(shell find $(CHECKED) -type f -not -path '*/__pycache__/*')

# What the sans-I/O core and the two error trees promise: every line and every branch is run by a test.
FULLY_COVERED := openenv_gym/session.py,openenv_gym/session_refusals.py,openenv_gym/messages.py,openenv_gym/frames.py,openenv_gym/json_text.py,openenv_gym/errors.py,openenv_gym/spaces/*,server/openenv_gym_server/dispatch.py,server/openenv_gym_server/parsing.py,server/openenv_gym_server/errors.py

export COVERAGE_FILE := $(abspath $(VENV))/.coverage

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help demo bench install test check lint types imports house coverage format snapshot clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(DEMO_DONE)  ## serve real environments, play them over the wire, compare with local ones
	$(BIN)/python examples/demo.py $(ARGS)

bench: $(BENCH_DONE)  ## measure this project beside its peers (ARGS='vector --pairs 5')
	$(BIN)/python -m benchmarks $(ARGS)

install: $(DEV_DONE)  ## create the virtual environment with all that developing needs

test: $(DEV_DONE)  ## run the test suite and measure its coverage (ARGS='-k echo' narrows it)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m 'not packaging and not programs' $(COVER) $(ARGS)
	@$(if $(WHOLE_SUITE),touch $(MEASURED))

check: lint types imports house coverage  ## run every gate
	@echo 'make check: every gate passed'

lint: $(DEV_DONE)  ## lint, and check the format
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/ruff format --check $(CHECKED)

types: $(DEV_DONE)  ## type-check: the packages strictly, the rest by the rules in pyproject.toml
	$(BIN)/mypy
	$(BIN)/mypy $(wildcard tests benchmarks)
	$(BIN)/mypy $(wildcard examples/*.py)

imports: $(DEV_DONE)  ## check the direction of the imports
	$(BIN)/lint-imports --no-logo

house: $(DEV_DONE)  ## check layout, limits, exports, the public API, and the built distribution
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile tests/house tests/interop/test_older_release.py tests/interop/test_older_gymnasium.py

coverage: $(MEASURED)  ## check the coverage of the last run of the suite (runs it after a change)
	$(BIN)/python -m coverage report --skip-covered --fail-under=90
	$(BIN)/python -m coverage report --include='$(FULLY_COVERED)' --skip-covered --show-missing --fail-under=100

format: $(DEV_DONE)  ## rewrite the code in the project's format
	$(BIN)/ruff check --fix $(CHECKED)
	$(BIN)/ruff format $(CHECKED)

snapshot: $(DEV_DONE)  ## rewrite the stored public API after a change that is meant
	$(BIN)/python -m tests.house.public_api --write

clean:  ## remove the environments, caches and whatever was built
	rm -rf .venv .venv-* build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find $(CHECKED) -type d -name __pycache__ -prune -exec rm -rf {} +

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "openenv-gym needs Python 3.11 or newer, and '$(PYTHON)' is $$($(PYTHON) --version 2>&1 || true)."; \
	    echo "Name another one: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; } >&2
	$(PYTHON) -m venv $(VENV)

$(DEMO_DONE): $(VENV)/pyvenv.cfg pyproject.toml constraints.txt
	$(PIP) --editable .
	@touch $@

$(DEV_DONE): $(VENV)/pyvenv.cfg pyproject.toml constraints.txt
	$(PIP) --editable '.[dev]'
	@touch $(DEMO_DONE) $(BENCH_DONE) $@

$(BENCH_DONE): $(VENV)/pyvenv.cfg pyproject.toml constraints.txt
	$(PIP) --editable '.[bench,fast]'
	@touch $@

$(MEASURED): $(DEV_DONE) $(SOURCES)
	$(MAKE) --no-print-directory test ARGS= MEASURE=yes
