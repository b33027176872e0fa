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

# Tests of nodes keep time on a clock and get the machine to themselves; the others share it.
test: setup  ## run every test
	@$(environment) status=0; python -m pytest --ignore=test/ros -n auto --maxprocesses 4 --dist loadfile || status=1; \
		python -m pytest test/ros || status=1; exit $$status

check: setup  ## lint, types and house rules
	@$(environment) ruff check . && ruff format --check . && mypy && python scripts/lint.py

clean:  ## remove .venv and everything that was built; out/ stays
	rm -rf .venv build install log .pytest_cache .mypy_cache .ruff_cache .hypothesis src/*.egg-info
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
