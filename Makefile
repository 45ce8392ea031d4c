# Everything here works on a machine with python3 (3.11 or newer, with venv), git, make and bash.
PYTHON ?= python3
BIN := .venv/bin
# Taken as it is, dollars included: make does not expand it.
CMD ?= printf 'hello from \033[1mbash\033[0m %s\n' "$BASH_VERSION"; git --version; \
       echo 'a warning' >&2; seq 3 | xargs -I@ sh -c 'sleep 0.5; echo "step @ of 3"'; \
       (sleep 5 >/dev/null 2>&1 &); nproc

.PHONY: run test test-core test-integrations check venv bench conformance picture format clean

run: .venv/ready ## run a real command through limpet: make run CMD='ls -la'
	@$(BIN)/limpet run --summary --description 'make run' -- '$(subst ','\'',$(value CMD))'

test: venv ## run the tests
	@$(MAKE) --no-print-directory -j 2 test-core test-integrations

test-core: .venv/ready
	$(BIN)/python -m pytest -n 3 --dist loadfile --ignore tests/integrations

# By themselves: each worker would import all frameworks, which takes ten seconds.
test-integrations: .venv/frameworks
	$(BIN)/python -m pytest -p no:xdist tests/integrations

check: venv ## format, lint, types, tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	@$(MAKE) --no-print-directory test

bench: venv ## measure limpet against what it is built on
	$(BIN)/python -m bench

conformance: venv ## the public MCP suite and inspector against limpet mcp; needs npm
	$(BIN)/python tests/integrations/conformance.py

venv: .venv/ready .venv/frameworks ## .venv with limpet and all that the tests and the benchmarks need

# Compiled here, since PYTHONDONTWRITEBYTECODE would leave each start to compile anew.
.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	$(BIN)/python -m compileall -q src
	@touch $@

# Not limpet itself, which is in use while this is done.
.venv/frameworks: .venv/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $$($(BIN)/python -c \
	  'import tomllib; print(*(one for name, extra in tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"].items() if name != "dev" for one in extra))')
	@touch $@

picture: venv ## draw docs/terminal.svg anew
	$(BIN)/python docs/picture.py

format: venv ## format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv .conformance build dist .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
