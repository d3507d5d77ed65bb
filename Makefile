# Every target sets up what it needs: a virtual environment with the dependencies, nats-server included.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SECONDS = 60
PEERS := build/peers

.DEFAULT_GOAL := help
.PHONY: help setup demo up test screenshots check format contracts fuzz bench bench-peers faults clean

help: ## Show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(STAMP) ## Make the virtual environment

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Turngate needs Python 3.11 or newer; set PYTHON=python3.11" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { \
		echo "python3 -m venv failed; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@echo "installing dependencies into $(VENV)" >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(STAMP) ## Play a fleet of agents for half a minute and show what becomes of their turns
	@$(BIN)/turngate demo

up: $(STAMP) ## Start a server with all services and keep it running
	@$(BIN)/turngate up

test: $(STAMP) ## Run all tests
	$(BIN)/python -m pytest --numprocesses 3

screenshots: $(STAMP) ## Have each page of the console drawn to build/screenshots, in light, dark and on a phone
	SCREENSHOTS=build/screenshots $(BIN)/python -m pytest tests/browser/test_looks.py

check: $(STAMP) ## Lint, formatting, types, import rules, dead code
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/vulture

format: $(STAMP) ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

contracts: $(STAMP) ## Write contracts/ anew from the package
	$(BIN)/python contracts/generate.py

fuzz: $(VENV)/.fuzz-installed ## Fuzz what takes foreign bytes for SECONDS=60 in all, or FUZZ="--only NAME"
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS) $(FUZZ)

$(VENV)/.fuzz-installed: $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[fuzz]'
	@touch $@

bench: $(STAMP) ## Measure against a no-op ceiling, and against the peers where make bench-peers was run
	$(BIN)/python -m bench $(BENCH)

bench-peers: $(PEERS)/.installed ## Install FastStream and taskiq beside the project, so that make bench measures them too

$(PEERS)/.installed: pyproject.toml constraints.txt bench/peers.txt
	@test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	@$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
		--requirement bench/peers.txt --editable '.[fast]'
	@touch $@

faults: $(STAMP) ## Play every fault against real processes, each crash point too, and show what was survived
	$(BIN)/python -m tests.system.faults --full

clean: ## Remove what was built
	rm -rf $(VENV) build dist bench/out .pytest_cache .mypy_cache .ruff_cache .hypothesis
