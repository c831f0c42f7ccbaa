# Everything a newcomer needs: `make demo` and `make test`. Both create .venv themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EDITORS ?= $(HOME)/.cache/kernel-lsp-test-editors
export KERNEL_LSP_TEST_EDITORS := $(EDITORS)

.PHONY: demo test test-vscode lint types bench clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# The extra [cuda] brings compiler and binary tools: no CUDA toolkit and no GPU needed.
$(VENV)/.demo: $(BIN)/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[cuda]'
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[cuda,dev]'
	@touch $@ $(VENV)/.demo

demo: $(VENV)/.demo
	$(BIN)/kernel-lsp check examples/*.cu --fail-on never

test: $(VENV)/.dev lint types
	tests/editors/install.sh nvim
	$(BIN)/pytest -n auto --dist worksteal --ignore tests/editors/test_vscode.py

# Instructions of CUTLASS kernels on all architectures: ten minutes, most of it in the compiler.
test-cutlass: $(VENV)/.dev
	KERNEL_LSP_TEST_CUTLASS=all $(BIN)/pytest -n 2 --timeout 1200 tests/oracle/test_sass.py tests/oracle/test_live_paths.py

test-vscode: $(VENV)/.dev
	tests/editors/install.sh vscode
	$(BIN)/pytest tests/editors/test_vscode.py

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
