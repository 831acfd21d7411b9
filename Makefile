# make run         sets up everything and starts the application
# make test        sets up everything and runs every test
# make evaluator   trains the retrieval evaluator anew, from the shared evaluation data; two hours

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: run test lint evaluator clean

run: $(VENV)/.ready
	$(BIN)/python -m streamlit run app.py

test: $(VENV)/.ready-dev
	PYTHON=$(BIN)/python sh tests/find_browser.sh
	$(BIN)/python -m pytest

lint: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy crag_core ui app.py
	for page in pages/*.py; do $(BIN)/mypy $$page || exit 1; done

evaluator: $(VENV)/.ready-dev
	$(BIN)/python -m training.train --out build/evaluator --threads 1
	$(BIN)/python -m training.calibrate --weights build/evaluator/weights.pt --out data/models/retrieval-evaluator

$(VENV)/.ready: requirements.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version.split()[0])'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	touch $@

$(VENV)/.ready-dev: $(VENV)/.ready requirements-dev.txt training/requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	touch $@

clean:
	rm -rf $(VENV)
