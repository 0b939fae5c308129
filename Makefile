# Every target sets up .venv by itself; it needs Python 3.11 or newer, and make.
# Another interpreter: make test PYTHON=python3.12

PYTHON ?= python3
BIN := .venv/bin
# What the product needs, and that with all that tests and benchmarks need.
RUNTIME := .venv/.runtime
INSTALLED := .venv/.installed
# One more than two cores: some tests wait, for a timeout or for a process that starts.
WORKERS ?= 3

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-browser test-image check bench studio clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r name text; do \
		printf '%-13s %s\n' "$$name" "$$text"; done

demo: $(RUNTIME) ## three days and two nights of the built-in story, offline
	$(BIN)/circadian demo

test: $(INSTALLED) ## the fast tests; WORKERS=8 where there are cores for it
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test-slow: $(INSTALLED) ## the tests marked slow, and the drawn ones with 500 examples each
	$(BIN)/python -m pytest -m "slow or hypothesis" --hypothesis-profile=thorough

test-browser: $(INSTALLED) ## the inspector's pages in chromium; axe looks for barriers
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || { \
		echo "chromium is not on PATH. To get it: sudo apt-get install chromium" >&2; exit 1; }
	$(BIN)/python -m pytest -q -m browser tests/browser

test-image: $(INSTALLED) ## the image and compose.yaml, where a Docker engine is
	@.ci/image

check: $(INSTALLED) ## ruff, mypy --strict, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/unit/project/test_layers.py tests/unit/project/test_packages.py \
		tests/unit/project/test_structure.py

bench: $(INSTALLED) ## the budgets, measured; a table and JSON
	$(BIN)/python -m benchmarks.run

studio: export CIRCADIAN_DATA ?= .circadian
studio: export LANGGRAPH_CLI_NO_ANALYTICS := 1
studio: export LANGGRAPH_NO_VERSION_CHECK := 1
# A kill -9 loses what `langgraph dev` was told in its last 10 s: docs/deploy.md, "What a kill loses".
studio: $(INSTALLED) ## the graph on a local server, for LangGraph Studio
	$(BIN)/langgraph dev --no-browser --n-jobs-per-worker 10

clean: ## remove the environment and the caches; never a data folder
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist *.egg-info

$(RUNTIME): pyproject.toml constraints.txt
	$(VENV)
	@echo "Setting up .venv with the product and its inspector: a minute, once."
	$(INSTALL) --no-compile -e '.[inspect]'
	@$(BIN)/python -m pip uninstall --quiet --yes setuptools  # Python 3.11 puts it there; nothing imports it
	@touch $(RUNTIME)

$(INSTALLED): pyproject.toml constraints.txt
	$(VENV)
	@echo "Setting up .venv with all that tests and benchmarks need: some minutes, once."
	$(INSTALL) -e '.[dev]'
	@touch $(RUNTIME) $(INSTALLED)

define VENV
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	echo "circadian needs Python 3.11 or newer, and '$(PYTHON)' is not one." \
		"Name one that is: make PYTHON=/path/to/python3.11" >&2; exit 1; }
$(PYTHON) -m venv .venv
endef
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
