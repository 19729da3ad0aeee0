# make run     set-up, the workflow, and where its report is      (make run CONFIG=config/paper.yaml ARGS=--dry-run)
# make seeds   set-up, and the seeds of your samples alone        (make seeds CONFIG=my.yaml)
# make smoke   the same on a tiny configuration, in seconds, in results of its own
# make test    set-up, the tests                                   (make test ARGS="-k sequences")
# make test-damage  thousands of damaged indexes, each refused in a sentence or searched to the end
# make lint    set-up, ruff, snakefmt, snakemake --lint, mypy
# make test-slurm  the workflow on a Slurm that is started for it: as root, where slurm-wlm and munge are installed
# make test-gpu  the tests that need a GPU, which fail where none answers
# make envs    envs/*.yaml from requirements*.txt
# make clean   removes what runs and tests made; the environment (.venv) stays

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := run
.PHONY: run seeds smoke test test-damage test-slurm test-gpu lint envs clean
MAKEFLAGS += --no-print-directory

VENV := .venv
# Snakemake starts scripts by the unquoted path of its Python, so from a folder with spaces it is started through a link.
EMPTY :=
SPACED := $(findstring $(EMPTY) $(EMPTY),$(CURDIR))
LINK := $(if $(SPACED),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/warpseed/venv-$(shell pwd | cksum | cut -d' ' -f1))
PY := $(or $(LINK),$(VENV))/bin/python
CONFIG ?=
ARGS ?=

GPU := $(shell nvidia-smi -L 2>/dev/null | grep -c GPU)
RUN_REQUIREMENTS := requirements.txt $(if $(filter-out 0,$(GPU)),requirements-gpu.txt)
DEV_REQUIREMENTS := $(RUN_REQUIREMENTS) requirements-cluster.txt requirements-dev.txt
# The command of this checkout: the package lies on the environment's path, and nothing has to be built for it.
COMMAND := $(VENV)/bin/warpseed
# A stamp carries the checksum of its requirements: a changed pin installs anew, a touched file does not.
RUN_STAMP := $(VENV)/run-$(shell cat $(RUN_REQUIREMENTS) | cksum | cut -d' ' -f1)
DEV_STAMP := $(VENV)/dev-$(shell cat $(DEV_REQUIREMENTS) | cksum | cut -d' ' -f1)

SNAKEMAKE := $(PY) -m snakemake
SNAKEFILES := Snakefile workflow/Snakefile workflow/rules
PYTHON_FILES := workflow/scripts tests tools

run: $(RUN_STAMP) $(COMMAND) | $(LINK)
	@$(SNAKEMAKE) $(ARGS) $(if $(CONFIG),--configfile "$(CONFIG)")
	@if [ -e results/report.html ]; then echo "The report is $$PWD/results/report.html"; fi
	@echo "The command for your own data is $$PWD/$(COMMAND)"

seeds: $(RUN_STAMP) $(COMMAND) | $(LINK)
	@$(SNAKEMAKE) seeds $(ARGS) $(if $(CONFIG),--configfile "$(CONFIG)")
	@[ ! -e results/seeds/samples.tsv ] || awk -F '\t' -v folder="$$PWD/results/seeds" \
	    'NR == 1 { for (i = 1; i <= NF; i++) at[$$i] = i } \
	    function of(number, one, many) { return number " " (number == 1 ? one : many) } \
	    NR == 1 { next } \
	    { line = folder "/" $$at["seeds"] ": " } \
	    "hits" in at && $$at["hits"] != "" { line = line of($$at["hits"], "seed", "seeds") " of " \
	        of($$at["queries"], "query", "queries") } \
	    "kmers" in at && $$at["kmers"] != "" { line = line of($$at["kmers"], "k-mer", "k-mers") ", " \
	        $$at["new"] " of them distinct" } \
	    "pairs" in at && $$at["pairs"] != "" { line = line of($$at["pairs"], "pair", "pairs") " of " \
	        of($$at["records"], "record", "records") } \
	    { print line }' \
	    results/seeds/samples.tsv

smoke: $(RUN_STAMP) $(COMMAND) | $(LINK)
	@mkdir -p results/smoke
	@$(SNAKEMAKE) $(ARGS) --directory results/smoke --configfile config/smoke.yaml
	@echo "The report is $$PWD/results/smoke/results/report.html"

test: $(DEV_STAMP) $(COMMAND) | $(LINK)
	@$(PY) -m pytest -n auto --dist loadfile --no-loadscope-reorder -m "not gpu and not slurm" $(ARGS)

test-damage: $(DEV_STAMP) $(COMMAND) | $(LINK)
	@WARPSEED_DAMAGE=20 $(PY) -m pytest tests/unit/test_index_damage.py $(ARGS)

test-slurm: $(DEV_STAMP) $(COMMAND) | $(LINK)
	@WARPSEED_SLURM=1 $(PY) -m pytest tests/slurm $(ARGS)

test-gpu: $(DEV_STAMP) $(COMMAND) | $(LINK)
	@WARPSEED_REQUIRE_GPU=1 WARPSEED_GPU_RECORD=resources/measurements $(PY) -m pytest -m gpu $(ARGS)

lint: $(DEV_STAMP) $(COMMAND) | $(LINK)
	@$(PY) -m ruff check $(PYTHON_FILES)
	@$(PY) -m ruff format --check $(PYTHON_FILES)
	@$(PY) -m snakefmt --check $(SNAKEFILES)
	@$(SNAKEMAKE) --lint
	@$(PY) -m mypy
	@$(PY) tools/make_envs.py --check

envs:
	@$(or $(wildcard $(VENV)/bin/python),python3) tools/make_envs.py

clean:
	rm -rf results logs benchmarks .snakemake .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/bin/python:
	@for python in $${PYTHON:-} python3.12 python3.11 python3; do \
	    if "$$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))' 2>/dev/null; then \
	        echo "Setting up $(VENV) with $$("$$python" --version) ..."; exec "$$python" -m venv $(VENV); \
	    fi; \
	done; echo "Python 3.11 or 3.12 was not found: install one, or name it: make PYTHON=/path/to/python3.12" >&2; exit 1

$(COMMAND): | $(VENV)/bin/python
	@echo ../../../../workflow/scripts > \
	    "$$($(VENV)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/warpseed.pth"
	@printf '%s\n' '#!/bin/sh' 'exec "$$(dirname "$$(readlink -f "$$0")")/python" -P -m warpseed "$$@"' > "$@"
	@chmod +x "$@"

$(RUN_STAMP): | $(VENV)/bin/python
	@echo "Installing $(RUN_REQUIREMENTS) ..."
	@$(VENV)/bin/python -m pip install -qq --disable-pip-version-check $(addprefix -r ,$(RUN_REQUIREMENTS))
	@rm -f $(VENV)/run-* && touch "$@"

$(DEV_STAMP): | $(VENV)/bin/python
	@echo "Installing $(DEV_REQUIREMENTS) ..."
	@$(VENV)/bin/python -m pip install -qq --disable-pip-version-check $(addprefix -r ,$(DEV_REQUIREMENTS))
	@rm -f $(VENV)/dev-* $(VENV)/run-* && touch "$@" "$(RUN_STAMP)"

ifneq ($(LINK),)
$(LINK): | $(VENV)/bin/python
	@mkdir -p "$(@D)" && ln -sfn "$$PWD/$(VENV)" "$@"
endif
