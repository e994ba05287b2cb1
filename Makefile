# make demo | test | test-all | soak | check | coverage | docs | bench | wheel | release | clean: each sets up
# what it needs by itself
PYTHON ?= python3
BIN := .venv/bin
# the stamp, not the folder: a set-up that was cut short is done again
READY := .venv/.ready

.PHONY: demo test test-all soak check coverage docs format bench wheel release clean

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
	$(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/python tools/layers.py --check

# one of each kind, compiled without optimisations, the programs kept for the next time
test: check
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder --durations 10

# everything but the soak, compiled as users' runs are
test-all: check
	@echo "this takes an hour or more on two cores"
	EDGEWISE_TESTS=optimised $(BIN)/python -m pytest -m 'not soak' --numprocesses auto --dist loadfile --no-loadscope-reorder --durations 10

# what takes too long for every day: large messages, long runs of real peers, bad networks
soak: $(READY)
	$(BIN)/python -m pytest -m soak --durations 0

# the tests of `make test` once more, slower, with every line counted; CONTRIBUTING.md says of what
coverage: $(READY)
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile --cov --cov-report term --cov-report html:out/coverage
	@echo "open out/coverage/index.html"

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
	@echo "open site/index.html; for its search: python3 -m http.server -d site"

format: $(READY)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(READY)
	$(BIN)/python benchmarks/guard.py

# apart from .venv: what builds a wheel is needed by nothing else
.venv-build/.ready: constraints.txt
	$(PYTHON) -m venv .venv-build
	.venv-build/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt build twine
	touch $@

wheel: .venv-build/.ready
	.venv-build/bin/python tools/release.py

release: .venv-build/.ready
	.venv-build/bin/python tools/release.py --release

clean:
	rm -rf .venv .venv-build out .coverage .coverage.* build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +
