# Every task of the project. `make` alone lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# The first Python that is new enough; where none is, python3, which then says so.
ifndef PYTHON
PYTHON := $(firstword $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python; done) python3)
endif
PORT ?= 8265
BIN := .venv/bin
# More for pytest: make test ARGS="tests/core -k fairshare"
ARGS ?=
PYTEST := $(BIN)/python -m pytest

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: up
up: ## Install, start the server in the background and run a first job (PORT=8265)
	@$(PYTHON) tools/setup.py examples page
	@tools/page
	@PORT=$(PORT) tools/up

.PHONY: down
down: ## Stop the server that `make up` started (PORT=9000: only if it is there)
	@$(if $(filter file,$(origin PORT)),,PORT=$(PORT)) tools/down

.PHONY: setup
setup: ## Install everything that a developer needs into .venv
	@$(PYTHON) tools/setup.py dev docs examples

.PHONY: notebook
notebook: ## Install JupyterLab and start it as a workspace; prints its URL
	@$(PYTHON) tools/setup.py notebook
	@$(BIN)/aliquot submit examples/notebook.yaml
	@$(BIN)/aliquot wait notebook --for running
	@until $(BIN)/aliquot logs notebook 2>/dev/null | grep '^JupyterLab:'; do sleep 0.5; done

.PHONY: test-notebook
test-notebook: ## Run the tests that need JupyterLab, which this installs
	@$(PYTHON) tools/setup.py dev examples notebook
	@$(PYTEST) tests/machine/server/test_notebook.py $(ARGS)

.PHONY: page
page: ## Build the web page from ui/ where it changed
	@$(PYTHON) tools/setup.py page
	@tools/page

.PHONY: test
test: ## Run all tests but those of the page (ARGS="tests/core -k fairshare" for some)
	@$(PYTHON) tools/setup.py dev examples
	@tools/compiler
	@$(PYTEST) -n auto --dist worksteal --ignore tests/page $(ARGS)

.PHONY: test-page
test-page: ## Build and check the page, then drive it in a real Chromium, which this installs
	@$(PYTHON) tools/setup.py dev examples page browser
	@tools/browser
	@tools/page --check
	@$(PYTEST) -n auto --dist worksteal tests/page $(ARGS)

.PHONY: shots
shots: ## Take screenshots of every page in both themes, empty, small and large, into shots/
	@$(PYTHON) tools/setup.py dev examples page browser
	@tools/browser
	@tools/page
	@$(BIN)/python -m tests.page.shots $(ARGS)

.PHONY: check
check: ## Lint, types, layers, and no drift in generated files
	@$(PYTHON) tools/setup.py dev examples
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo 2>&1 || { echo 'make check: a contract in pyproject.toml is broken, see above'; exit 1; }
	@$(BIN)/python -m aliquot.app.gen --check

.PHONY: fix
fix: ## Format, and correct what ruff can correct
	@$(PYTHON) tools/setup.py dev examples
	@$(BIN)/ruff check --fix-only
	@$(BIN)/ruff format

.PHONY: ci
ci: check coverage conformance days deaths test-notebook test-page test ## All that must pass before a change lands

.PHONY: conformance
conformance: ## Judge the engine by the conformance cases beside the checkout (ARGS=-v shows what differs)
	@$(PYTHON) tools/setup.py examples
	@tools/conformance $(ARGS)

.PHONY: coverage
coverage: ## Hold the quick tests of the engine to every branch of it
	@$(PYTHON) tools/setup.py dev
	@$(PYTEST) tests/core -m 'not slow' --quiet --cov aliquot.core --cov-branch --cov-fail-under 100 --cov-report term-missing:skip-covered $(ARGS)

.PHONY: mutants
mutants: ## Break the engine in 2,700 ways and list what no test notices: an hour or two (ARGS="aliquot.core.gang.*")
	@$(PYTHON) tools/setup.py dev mutation
	@tools/mutants $(ARGS)

.PHONY: gen
gen: ## Write the generated files: docs/reference/openapi.json and its like
	@$(PYTHON) tools/setup.py dev examples
	@$(BIN)/python -m aliquot.app.gen

.PHONY: golden
golden: ## Write the goldens of the tests anew; review the diff
	@$(PYTHON) tools/setup.py dev examples
	@tools/golden

# A search is kept in .prop and goes on where it was: PROP_SHARD=0/4 for the first of four, PROP_CYCLES=1000 for a short one.
PROP_CYCLES ?= 100000
PROP_RUNS ?= 2000
PROP_SHARD ?= 0/1

.PHONY: prop
prop: laws ## Search long for a broken law: 100,000 random cycles, 2,000 runs, and the property tests with many more cases
	@HYPOTHESIS_PROFILE=prop $(PYTEST) -n auto --dist worksteal --timeout 3600 -m '(hypothesis or days) and not machine' $(ARGS)

.PHONY: laws
laws: ## Judge random cycles and runs by the laws alone (PROP_SHARD=0/4, PROP_CYCLES=1000)
	@$(PYTHON) tools/setup.py dev examples
	@$(BIN)/python -m tests.laws.search --cycles $(PROP_CYCLES) --runs $(PROP_RUNS) --shard $(PROP_SHARD)

.PHONY: days
days: ## Judge 1,000 random days of a cluster by the laws of scheduling
	@$(PYTHON) tools/setup.py dev examples
	@HYPOTHESIS_PROFILE=prop $(PYTEST) -n auto --dist worksteal --timeout 3600 -m days $(ARGS)

.PHONY: deaths
deaths: ## Kill the server 200 times between intent, start, record and exit; lose nothing
	@$(PYTHON) tools/setup.py dev examples
	@ALIQUOT_TEST_DEATHS=200 $(PYTEST) tests/machine/server/test_crashes.py $(ARGS)

.PHONY: bench
bench: ## Measure what the project promises in seconds
	@$(PYTHON) tools/setup.py examples
	@$(BIN)/python bench/run.py $(ARGS)

.PHONY: bench-engine
bench-engine: ## Measure one cycle of the engine, beside the peer (ARGS="--only allocate --nodes 500")
	@$(PYTHON) tools/setup.py examples
	@$(BIN)/python bench/engine.py $(ARGS)

.PHONY: bench-openb
bench-openb: ## Measure placement on the public openb workloads, beside what is published (ARGS="--seeds 1 --jobs 2")
	@$(PYTHON) tools/setup.py examples
	@$(BIN)/python bench/openb.py $(ARGS)

.PHONY: bench-queueing
bench-queueing: ## Measure completion times of public traces, beside plain FIFO (ARGS="--traces cluster06")
	@$(PYTHON) tools/setup.py examples
	@$(BIN)/python bench/queueing.py $(ARGS)

.PHONY: docs
docs: ## Build the documentation into site/, broken links being errors
	@$(PYTHON) tools/setup.py docs
	@$(BIN)/mkdocs build --strict --quiet && echo 'site/index.html is the start'

.PHONY: lock
lock: ## Pin all dependencies anew, with hashes (UPGRADE=1 moves to the newest versions)
	@$(PYTHON) tools/setup.py uv
	@tools/lock $(if $(UPGRADE),--upgrade)
	@$(PYTHON) tools/setup.py

.PHONY: clean
clean: ## Remove .venv, caches and builds; data of the server stays
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache htmlcov .coverage mutants dist site
	@find src tests tools -name __pycache__ -type d -prune -exec rm -rf {} +
