# make demo | test | test-all | soak | check | docs | bench | clean: each sets up .venv by itself
PYTHON ?= python3
BIN := .venv/bin
# the stamp, not the folder: a set-up that was cut short is done again
READY := .venv/.ready

.PHONY: demo test test-all soak check docs format bench clean

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Edgewise needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: $(READY)
	$(BIN)/python examples/demo.py

check: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# at most 8 minutes on two cores: one of each kind, compiled without optimisations
test: check
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile --durations 10

# everything but the soak, compiled as users' runs are
test-all: check
	@echo "this takes about an hour on two cores"
	EDGEWISE_TESTS=optimised $(BIN)/python -m pytest -m 'not soak' --numprocesses auto --dist loadfile --durations 10

# what takes too long for every day: large messages, long runs of real peers, bad networks
soak: $(READY)
	$(BIN)/python -m pytest -m soak --durations 0

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
	@echo "open site/index.html; for its search: python3 -m http.server -d site"

format: $(READY)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(READY)
	$(BIN)/python benchmarks/guard.py

clean:
	rm -rf .venv out build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +
