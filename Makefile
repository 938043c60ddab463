# Every task of the project. `make` alone lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
PORT ?= 8265
BIN := .venv/bin

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## Install everything that a developer needs into .venv
	@$(PYTHON) tools/setup.py dev docs examples

.PHONY: lock
lock: setup ## Pin all dependencies anew, with hashes (UPGRADE=1 moves to the newest versions)
	@tools/lock $(if $(UPGRADE),--upgrade)
