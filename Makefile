BIN := .venv/bin
INSTALLED := .venv/.installed
# the newest interpreter that the pins are made for
PYTHON ?= $(shell for python in python3.13 python3.12 python3.11 python3; do \
	$$python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
		2>/dev/null && command -v $$python && break; done)
# the same numbers with and without a graphics card
export JAX_PLATFORMS ?= cpu
# XLA has threads of its own: a second pool, under its calls of LAPACK, makes both wait
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: book test types bench lab clean

book: $(INSTALLED)
	$(BIN)/jupyter-book build -W --keep-going --all .

test: $(INSTALLED) types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/python -m pytest --numprocesses auto --dist loadscope --no-loadscope-reorder --cov

types: $(INSTALLED)
	$(BIN)/pyright --pythonpath $(BIN)/python

bench: $(INSTALLED)
	$(BIN)/python -m benchmarks.run

lab: $(INSTALLED)
	$(BIN)/jupyter lab book

clean:
	rm -rf _build build .coverage*

# an installation that failed is tried again: only a whole one is marked
$(INSTALLED): requirements.txt pyproject.toml book/pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11, 3.12 or 3.13 is needed, and none was found;" \
		"install one, or name it: make PYTHON=/path/to/python" >&2; exit 1; }
	rm -f $@
	$(PYTHON) -m venv $(if $(wildcard $(INSTALLED)),,--clear) .venv
	$(BIN)/pip install --quiet -r requirements.txt
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable . --editable ./book
	$(BIN)/jupytext-config --settings-file .venv/etc/jupyter/labconfig/default_setting_overrides.json \
		set-default-viewer markdown myst
	touch $@
