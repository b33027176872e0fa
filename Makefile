# SPDX-License-Identifier: Apache-2.0
SHELL := /bin/bash
environment := . .venv/setup.bash &&

.PHONY: help setup demo test check clean

help:  ## say what there is
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup:  ## make or complete .venv (the others do it first)
	@scripts/setup.sh

demo: setup  ## from one demonstration to replayed episodes, under out/demo
	@$(environment) supple demo

test: setup  ## run every test
	@$(environment) python -m pytest

check: setup  ## lint, types and house rules
	@$(environment) ruff check . && ruff format --check . && mypy && python scripts/lint.py

clean:  ## remove .venv and everything that was built; out/ stays
	rm -rf .venv build install log .pytest_cache .mypy_cache .ruff_cache .hypothesis src/*.egg-info
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
