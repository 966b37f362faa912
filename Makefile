# Every target sets up what it needs: a .venv from requirements.lock, once. `make` alone lists them.

PYTHON ?= python3
UV ?= uv

VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
LAB := $(BIN)/codeai-lab
PYTEST := $(BIN)/python -m pytest -q -p no:cacheprovider
READY := $(VENV)/.installed

NOTEBOOKS := $(wildcard notebooks/*.ipynb) $(shell find evidence -name notebook.ipynb 2>/dev/null)
# Three at a time, since on two cores one of them waits: for a browser, a disk, a kill. The longest come first, and
# last the one that starts two kernels at once. Each one's output is in one piece where this make can do that.
TOGETHER := $(MAKE) --no-print-directory --keep-going -j3 $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# A kernel chooses its own way of drawing.
unexport MPLBACKEND

.PHONY: help demo lab test lint types unit unit-files unit-rest real kills browser synced nbval sync bench lock clean
.DELETE_ON_ERROR:

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-7s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(READY)  ## replay retry-effects under every rule set, freeze it, verify it
	@$(LAB) demo

lab: $(READY)  ## open JupyterLab on the notebooks
	@$(LAB) lab

test: $(READY)  ## lint, types, unit tests, real kernels and kills, notebooks byte for byte, nbval
	@$(TOGETHER) real browser unit-files unit-rest nbval kills synced types lint

sync: $(READY)  ## run the notebooks and store their outputs
	@$(LAB) sync

bench: $(READY)  ## measure, side by side with what it stands on
	@$(BIN)/python -m benchmarks

lock:  ## write requirements.lock anew from pyproject.toml (UPGRADE=--upgrade takes newer versions)
	@command -v $(UV) >/dev/null || { echo "make lock needs uv; install it with: python3 -m pip install uv"; exit 1; }
	@$(UV) pip compile pyproject.toml --extra test --extra libraries --extra sweeps --group build --universal --fork-strategy fewest \
	  --generate-hashes --no-emit-index-url --no-annotate --no-header --quiet $(UPGRADE) -o requirements.lock

clean:  ## remove .venv, caches and builds
	@rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- the parts of `make test`, each also a target of its own ---

lint: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(READY)
	@$(BIN)/mypy

unit: $(READY)
	@$(TOGETHER) unit-files unit-rest

# Two halves of the unit tests, one for each core: what is about files and commands, and the rest.
FILES := tests/prove tests/store tests/cli

unit-files: $(READY)
	@$(PYTEST) $(FILES)

unit-rest: $(READY)
	@$(PYTEST) tests --ignore=tests/real $(addprefix --ignore=,$(FILES))

real: $(READY)
	@$(PYTEST) tests/real --ignore-glob='*_browser.py' --ignore-glob='*_kills.py'

kills: $(READY)
	@$(PYTEST) $(wildcard tests/real/*_kills.py)

# The browser tests drive Debian's Chromium; where it is missing and may be installed, it is. No target of its
# own: make would begin everything else before it came back to what waits for that.
browser: $(READY)
	@for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null && exit 0; done; \
	test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null && exit 0; \
	echo "The browser tests need Chromium; install it, on Debian with: apt-get install chromium"; exit 1
	@$(PYTEST) $(wildcard tests/real/*_browser.py)

synced: $(READY)
	@$(LAB) sync --check

# nbval hands its own environment to the kernels, so what `sync` fixes is fixed here too.
nbval: $(READY)
ifneq ($(strip $(NOTEBOOKS)),)
	@PYTHONHASHSEED=0 TZ=UTC COLUMNS=80 SOURCE_DATE_EPOCH=0 PYTHONUTF8=1 $(PYTEST) --nbval $(NOTEBOOKS)
else
	@echo "There are no notebooks to validate."
endif

# --- the environment: the lock first, then the project itself; neither is touched again until its file changes ---

# The pip that comes with Python may take half a minute to choose what the lock leaves no choice about.
PIP := pip==26.3 --hash=sha256:f3b60b20ffaadd4415ed7957212a38ac63fa4c5fa375bd0f4a797777940fad13

$(VENV)/.locked: requirements.lock
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || { \
	  echo "codeai_lab needs Python 3.11 or newer; name one with: make PYTHON=python3.12"; exit 1; }
	@echo "Setting up $(VENV) from requirements.lock, once; this takes about a minute."
	@$(PYTHON) -m venv --clear $(VENV) || { \
	  echo "Python could not make $(VENV); on Debian and Ubuntu install the package python3-venv."; exit 1; }
	@echo "$(PIP)" >$(VENV)/pip.txt
	@$(BIN)/python -m pip install -qq --require-hashes -r $(VENV)/pip.txt || echo "Going on with the pip that is there."
# Compiled afterwards, on all cores; like pip, this passes over what is no Python of this version.
	@$(BIN)/python -m pip install -qq --no-compile --require-hashes -r requirements.lock
	@$(BIN)/python -m compileall -qq -j0 $(VENV) || true
	@touch $@

$(READY): $(VENV)/.locked pyproject.toml
	@$(BIN)/python -m pip install -qq --no-deps --no-build-isolation -e .
	@touch $@
