# Every target builds what it needs in .venv (and .venv-tpu, .venv-hf) in this checkout, once; see `make help`.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
READY_TPU := .venv-tpu/.ready
READY_HF := .venv-hf/.ready
PIP_INSTALL := python -m pip install --quiet --disable-pip-version-check -c requirements/constraints.txt

TESTARGS ?=
# What `make demo` migrates: a folder with a program as it was.
DEMO ?= fixtures/multi_file_trainer/before
# For `make bench`: a folder of checked-out repositories, and among them pytorch/xla.
CORPUS ?=
XLA ?= $(firstword $(wildcard $(CORPUS)/*pytorch*xla $(CORPUS)/xla) fixtures)

.PHONY: help demo test lint bench format docs clean
.DEFAULT_GOAL := help

help:
	@echo "make demo     migrate a sample program in a scratch copy and show what happens"
	@echo "make test     all tests; quicker: make test TESTARGS='-m \"not slow\"'"
	@echo "make lint     ruff and mypy"
	@echo "make bench    speed ratios; with CORPUS=DIR also over the repositories checked out in DIR"
	@echo "make format   let ruff rewrite what it can"
	@echo "make docs     generate docs/rules/ from rules/"
	@echo "make clean    remove the environments, caches and builds"

$(READY): pyproject.toml requirements/constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/$(PIP_INSTALL) -e '.[dev]'
	@touch $@

# The real torch_tpu beside the torch it is meant for: tests/test_emitted_names.py asks it what exists.
# Where pip would fetch a torch with CUDA, PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu saves gigabytes.
$(READY_TPU): requirements/constraints.txt
	$(PYTHON) -m venv .venv-tpu
	.venv-tpu/bin/$(PIP_INSTALL) torch torch_tpu libtpu
	@touch $@

# The newest Hugging Face libraries, for tests/rules/test_hf_names.py, which reads their sources and runs none.
$(READY_HF): requirements/constraints.txt
	$(PYTHON) -m venv .venv-hf
	.venv-hf/bin/$(PIP_INSTALL) --no-deps transformers accelerate diffusers peft trl huggingface_hub
	@touch $@

demo: $(READY)
	@test -d "$(DEMO)" || { echo "make demo: there is no folder $(DEMO); name one: make demo DEMO=DIR" >&2; exit 2; }
	@PATH="$(CURDIR)/$(BIN):$$PATH" && scratch=$$(mktemp -d) && trap 'rm -rf "$$scratch"' EXIT && \
	cp -R "$(DEMO)/." "$$scratch" && cd "$$scratch" && \
	run() { printf '\n$$ %s\n' "$$*"; "$$@" || test $$? -eq 1; } && \
	echo "A scratch copy of $(DEMO):" && find . -type f | sort && \
	run tpu-migrate . && \
	run tpu-migrate . --apply --quiet && \
	run diff -ru "$(abspath $(DEMO))" . --exclude .tpu-migrate && \
	run tpu-migrate undo && \
	diff -r "$(abspath $(DEMO))" . --exclude .tpu-migrate && echo "The files are as they were."

test: $(READY) $(READY_TPU) $(READY_HF)
	$(BIN)/python -m pytest -n 2 --dist loadfile $(TESTARGS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python benchmarks/speed.py $(XLA)
	$(if $(CORPUS),$(BIN)/python benchmarks/corpus.py $(CORPUS)/*/)

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY)
	$(BIN)/python docs/generate.py

clean:
	rm -rf .venv .venv-tpu .venv-hf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
