# Everything sets itself up: a fresh machine needs Python 3.11+ (with venv) and make, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SMALL := $(VENV)/.small

, := ,
.DEFAULT_GOAL := help
.PHONY: help demo tools test test-all fuzz lint docs docs-serve bench bench-setup clean

# What some tests use besides Python: strace kills workers at a system call, faketime moves their clocks, Spark
# runs on Java, mariadbd holds tables that are asked there.
TOOLS := strace faketime java mariadbd
PACKAGE_java := openjdk-17-jre-headless
PACKAGE_mariadbd := mariadb-server
PACKAGES := $(foreach tool,$(TOOLS),$(tool):$(or $(PACKAGE_$(tool)),$(tool)))

help:  ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

define environment
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "sfumato needs Python 3.11 or newer; set PYTHON=python3.x"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "python venv is missing: apt-get install python3-venv"; exit 1; }
	@$(BIN)/python -m pip install --quiet --upgrade pip
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[$(1)]' $(2)
endef

$(READY): pyproject.toml referee/pyproject.toml constraints.txt
	$(call environment,test$(,)lint,--editable ./referee)
	@touch $@ $(SMALL)

# What a newcomer needs, without PyTorch and the tools of developers.
$(SMALL): pyproject.toml constraints.txt
	$(call environment,cli$(,)sql$(,)report)
	@touch $@

demo: $(SMALL)  ## a small private analysis of a generated hospital, start to end
	@$(BIN)/sfumato demo

tools:
	@missing=""; for tool in $(PACKAGES); do command -v $${tool%%:*} > /dev/null || missing="$$missing $${tool#*:}"; done; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	    echo "installing for the tests:$$missing"; \
	    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$missing; } > /dev/null 2>&1 && exit 0; \
	fi; \
	echo "not installed:$$missing; the tests that need them are skipped (as root: apt-get install$$missing)"

test: $(READY) tools  ## the tests (a few minutes on two cores)
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-all: $(READY) tools lint  ## all tests: slow, statistical and soak tests too
	SFUMATO_EXAMPLES=fresh $(BIN)/python -m pytest -n 2 --dist worksteal -m "slow or not slow"

# Steered by coverage where atheris can be installed, otherwise at random. make fuzz TARGET=sql MINUTES=15
MINUTES ?= 1
TARGET ?= all
fuzz: $(READY)  ## search for inputs that are not taken as they should be, MINUTES=1 for each target
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[fuzz]' || echo "atheris cannot be installed here"
	$(BIN)/python -m tests.fuzz.run $(TARGET) --minutes $(MINUTES)

lint: $(READY)  ## ruff and strict mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(READY)  ## the documentation site, into build/site; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

docs-serve: $(READY)  ## the same, shown at 127.0.0.1:8000 while you write
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs serve

bench-setup: $(READY)  ## one virtual environment per peer library, under .bench/
	$(BIN)/python -m bench.peers

bench: $(READY) bench-setup  ## the benchmarks, side by side with the peers
	$(BIN)/python -m bench.noise
	$(BIN)/python -m bench.accounting
	$(BIN)/python -m bench.mechanisms
	$(BIN)/python -m bench.holdout
	$(BIN)/python -m bench.ledger
	$(BIN)/python -m bench.query
	$(BIN)/python -m bench.engines
	$(BIN)/python -m bench.sql_workloads
	$(BIN)/python -m bench.coverage
	$(BIN)/python -m bench.budget
	$(BIN)/python -m bench.learn
	$(BIN)/python -m bench.audit
	$(BIN)/python -m bench.audit_power
	$(BIN)/python -m bench.audit_models
	$(BIN)/python -m bench.migration

clean:  ## remove what the other commands made
	rm -rf $(VENV) .bench hospital-demo dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
