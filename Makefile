# Everything a person or CI does here is one target; `make help` prints this list.
.DEFAULT_GOAL := help
.PHONY: help setup demo serve fmt check gen test test-long bench bench-peers bench-overload bench-storm bench-governance bench-rollouts bench-twins bench-semantics bench-feedback lint types imports tidy go-lines gen-check
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.setup-stamp
# python3.11 if there, else any newer one
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
GEN_MODULE := acp_spec.codec.generate
# two workers: the tests start real servers, and two cores are what CI has
WORKERS ?= 2
PYTEST := $(PY) -m pytest -q -n $(WORKERS) --dist loadfile
GO_ADAPTER := reference_components/ledger_adapter
GO_LINES_MAX := 200
PAGES := gateway/transports/dashboard/source
# where the data sets lie that some tests and the demo's INPUT may use; stands only here
ACP_DATA ?= $(abspath ../shared/data)
export ACP_DATA

help: ## print the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

setup: $(STAMP) ## make .venv with everything pinned; does nothing if it is up to date

$(STAMP): pyproject.toml constraints/python.txt
	@test -n "$(PYTHON)" || { echo "no Python >= 3.11 found: apt-get install python3 python3-venv"; exit 1; }
	@test -x $(PY) || $(PYTHON) -m venv $(VENV) || { echo "cannot make $(VENV): apt-get install python3-venv"; exit 1; }
	@echo "setup: installing into $(VENV), about a minute the first time"
	@$(PY) -m pip install -q --disable-pip-version-check -c constraints/python.txt hatchling
	@$(PY) -m pip install -q --disable-pip-version-check -c constraints/python.txt --no-build-isolation -e '.[dev]'
	@touch $(STAMP)

demo: setup ## run the bank hotline end to end; INPUT=file.csv for your own texts
	@$(VENV)/bin/acp demo $(if $(INPUT),--input "$(INPUT)")

serve: setup ## start a gateway on loopback, data in .data
	@exec $(VENV)/bin/acp serve --data-dir .data

fmt: setup ## format the code and mend what can be mended
	@$(PY) -m ruff check -q --fix-only .
	@$(PY) -m ruff format .

check: lint types imports tidy go-lines gen-check ## all that is checked without running: format, lint, types, imports, style
	@echo "check: all good"

lint: setup
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .

types: setup
	$(PY) -m mypy
	@if command -v node >/dev/null || test "$${CI:-}" = true; then \
		echo "$(PY) -m pyright" && $(PY) -m pyright --warnings; \
	else echo "pyright not run: it needs node (apt-get install nodejs)"; fi

imports: setup
	$(VENV)/bin/lint-imports --no-cache

tidy: setup
	$(PY) tidy.py

go-lines:
	@n=$$(find $(GO_ADAPTER) -name '*.go' ! -name '*_test.go' -exec cat {} + | wc -l); \
	echo "go-lines: $(GO_ADAPTER) has $$n lines of Go, at most $(GO_LINES_MAX) are allowed"; \
	test $$n -gt 0 -a $$n -le $(GO_LINES_MAX)

gen: setup ## write the generated files: protobuf code, JSON Schemas, OpenAPI, the conformance table
	@$(PY) -m $(GEN_MODULE)
	@$(PY) -m conformance_tests.broken

.PHONY: pages
pages: ## build the dashboard's pages from their sources into the files that are served; needs npm
	@cd $(PAGES) && npm ci --no-audit --no-fund --loglevel=error && npm run --silent check && npm run --silent test >/dev/null && npm run --silent build

# Compares before and after instead of asking git, so that it also works with uncommitted changes.
gen-check: setup
	@sum() { find acp_spec -type f ! -path '*/__pycache__/*' -print0 | sort -z | xargs -0 sha256sum; }; \
	before=$$(sum); $(PY) -m $(GEN_MODULE) >/dev/null; \
	diff <(echo "$$before") <(sum) || { echo "generated files were not up to date: commit what make gen wrote"; exit 1; }; \
	echo "gen-check: generated files are up to date"

test: setup ## every test that takes seconds; ends with the list of what was skipped
	@$(PYTEST) -m "not long"

test-long: setup ## the tests that take minutes
	@$(PYTEST) -m long

bench: setup ## measure every promised figure five times; about 20 minutes, wants a quiet machine
	@$(PY) benchmarks/bench.py

bench-governance: setup ## what the row, a decision and 100,000 targets cost; JSON on the last line
	@$(PY) benchmarks/bench_governance.py

.PHONY: simulate soak
simulate: setup ## many sessions of the real gateway under virtual time and faults; MUTANT=name puts a bug in, `?` lists them
	@$(VENV)/bin/acp simulate --seed $(or $(SEED),1) $(if $(MUTANT),--mutant "$(MUTANT)" --seconds 60,--sessions $(or $(SESSIONS),20000))

soak: setup ## simulate for HOURS=h (1), a seed of its own each time
	@$(VENV)/bin/acp simulate --seed $(or $(SEED),$(shell date +%s)) --seconds $(shell echo $$(( $(or $(HOURS),1) * 3600 )))

bench-rollouts: setup ## what rollouts cost, how many sessions their verdicts need; JSON on the last line
	@$(PY) -m benchmarks.bench_rollouts

bench-twins: setup ## what callers notice of a shadow; JSON on the last line
	@$(PY) -m benchmarks.bench_twins

bench-peers: setup ## the same durable job on other engines and on ours, in turn; installs them into .build
	@$(PY) benchmarks/bench_peers.py

bench-semantics: setup ## how values find into a domain: BANKING77's names, perturbed, and foreign ones
	@$(PY) benchmarks/bench_semantics.py $(if $(MODEL),--model "$(MODEL)")

bench-overload: setup ## five times what the gateway can do: goodput, p99, memory; about a minute
	@$(PY) benchmarks/bench_overload.py

.PHONY: bench-records
bench-records: setup ## the records: the seed's question over SESSIONS=n (200000) and 2 million, ingest, lag; JSON on the last line
	@$(PY) benchmarks/bench_records.py --sessions $(or $(SESSIONS),200000)

bench-feedback: setup ## judgements a second, and how soon one is a reward; half a minute
	@$(PY) benchmarks/bench_feedback.py

bench-storm: setup ## three levels that try three times each: calls per request, goodput after an outage; 3 min
	@$(PY) benchmarks/bench_storm.py
