# Every target works on a fresh clone: it makes .venv and installs what it needs first.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
RUN ?= 8

.PHONY: install demo check test test-all bench lint format wheel clean help

help:  ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/.made:
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.demo: pyproject.toml constraints.txt | $(VENV)/.made
	$(PIP) install -q -c constraints.txt -e '.[local]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/.made
	$(PIP) install -q -c constraints.txt -e '.[dev,local,mcp,train]'
	@touch $@

install: $(VENV)/.dev  ## Install for development into .venv

demo: $(VENV)/.demo  ## Install, then let the shipped host answer live comments with a real small model
	$(BIN)/harnessctl models pull smol
	$(BIN)/harnessctl compile
	$(BIN)/harnessctl run recipe=demo --input manifests/worlds/live-room/comments.jsonl limit=$(RUN)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyrefly check
	$(BIN)/lint-imports

check: lint  ## Lint, types, layers, and the repository's own manifests
	$(BIN)/harnessctl validate
	$(BIN)/harnessctl compile --locked

test: check  ## Everything that CI runs
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-all: check  ## The slow and the GPU tests too
	$(BIN)/harnessctl models pull smol
	$(BIN)/python -m pytest -n 2 --dist worksteal -m ''

bench: $(VENV)/.dev  ## Benchmarks; see docs/performance.md
	$(BIN)/python benchmarks/compile.py
	$(BIN)/python benchmarks/inprocess.py
	$(BIN)/python benchmarks/requests.py
	$(BIN)/python benchmarks/augment.py
	$(BIN)/python -m benchmarks.rollouts
	$(BIN)/python benchmarks/batched.py
	$(BIN)/python benchmarks/rl_update.py
	$(BIN)/python benchmarks/sft.py
	$(BIN)/python benchmarks/bootstrap.py

format: $(VENV)/.dev  ## Format the sources
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

wheel: $(VENV)/.dev  ## Build the wheel into dist/
	$(BIN)/python -m build --wheel

clean:  ## Remove what was made, runs excepted
	rm -rf build dist .pytest_cache .ruff_cache .hypothesis
