BIN := .venv/bin
INSTALLED := .venv/.installed
# the same numbers with and without a graphics card
export JAX_PLATFORMS ?= cpu

.PHONY: book test bench lab clean

book: $(INSTALLED)
	$(BIN)/jupyter-book build -W --keep-going --all .

test: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/python -m pytest --numprocesses auto --dist loadscope --no-loadscope-reorder

bench: $(INSTALLED)
	$(BIN)/python -m benchmarks.run

lab: $(INSTALLED)
	$(BIN)/jupyter lab book

clean:
	rm -rf _build build

$(INSTALLED): requirements.txt pyproject.toml
	python3 -m venv .venv
	$(BIN)/pip install --quiet -r requirements.txt
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	$(BIN)/jupytext-config --settings-file .venv/etc/jupyter/labconfig/default_setting_overrides.json \
		set-default-viewer markdown myst
	touch $@
