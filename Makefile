# Every command of the project. The first one builds .venv from locked versions; nothing else needs to be set up.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
# Test processes, and simulated worlds at once. For two cores: a third of the tests' time is waiting for real processes.
WORKERS ?= 3
JOBS ?= 2
# Passed on: make test ARGS="-k lease", make demo ARGS="--seconds 10", make lock ARGS=--upgrade
ARGS ?=

# The tests and the proof start hundreds of processes; without kept bytecode each compiles the project again.
export PYTHONDONTWRITEBYTECODE :=

BIN := .venv/bin
READY := .venv/.ready
SERVERS := postgres mariadb redis valkey etcd nats zookeeper dynamodb

$(READY): requirements/dev.txt pyproject.toml
	@$(PYTHON) scripts/bootstrap.py

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z%-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: venv
venv: $(READY) ## Build .venv, or bring it up to date

.PHONY: demo
demo: $(READY) ## Five replicas, one killed, one frozen: every slot runs once
	@$(BIN)/solocron demo $(ARGS)

# --- checks: none of them needs a server ---------------------------------------------------------------------------

.PHONY: check
check: check-format check-lint check-types check-imports check-seams check-files check-words ## Format, lint, types, imports, seams, words

.PHONY: check-format check-lint check-types check-imports check-seams check-files check-words
check-format: $(READY)
	@$(BIN)/ruff format --check .
check-lint: $(READY)
	@$(BIN)/ruff check .
check-types: $(READY)
	@$(BIN)/mypy
	@$(BIN)/basedpyright
	@$(BIN)/python scripts/check_typing.py
check-imports: $(READY)
	@$(BIN)/lint-imports --no-logo
check-seams: $(READY)
	@$(BIN)/python scripts/check_seams.py
check-files: $(READY)
	@$(BIN)/python scripts/check_files.py
check-words: $(READY)
	@$(BIN)/python scripts/check_words.py

.PHONY: format
format: $(READY) ## Format the code and repair what can be repaired
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

# --- tests -----------------------------------------------------------------------------------------------------------

# In a fresh clone each worker would compile every test for itself; two processes do it once, before the workers begin.
COMPILED := .venv/.compiled
$(COMPILED): $(READY)
	@$(BIN)/pytest --collect-only -q tests/unit > /dev/null & \
	 $(BIN)/pytest --collect-only -q $(filter-out tests/unit/ %__/,$(wildcard tests/*/)) > /dev/null; wait; touch $@

# Those that measure time want the machine to themselves and come first; no such test (exit 5) is fine. Only the files
# that have one are collected for them.
.PHONY: test
test: servers $(COMPILED) ## Run every test; installs missing servers where it can
	@$(BIN)/pytest -m alone $(ARGS) $$(grep -rlF pytest.mark.alone tests --include='test_*.py') || [ $$? -eq 5 ]
	@$(BIN)/pytest -m "not alone" -n $(WORKERS) $(ARGS)

.PHONY: test-long
test-long: servers ## What `make test` leaves out: larger worlds, longer storms, a thousand examples of each property; over an hour
	@$(BIN)/pytest --long -m "long and alone" $(ARGS) $$(grep -rlF pytest.mark.alone tests --include='test_*.py')
	@$(BIN)/pytest --long -m "long and not alone" -n $(WORKERS) $(ARGS)
	@HYPOTHESIS_PROFILE=long $(BIN)/pytest -m "hypothesis and not long" -n $(WORKERS) $(ARGS)

.PHONY: browser
browser: $(READY) ## Every page in a real browser: both themes, three widths, accessibility, all acts
	@$(BIN)/python scripts/servers.py chromium
	@$(BIN)/pytest --long tests/browser $(ARGS)

.PHONY: telemetry
telemetry: $(READY) ## Real nodes under a real Prometheus: alerts that take minutes on purpose fire after kill -9
	@$(BIN)/python scripts/servers.py prometheus
	@$(BIN)/pytest --long tests/e2e/test_prometheus.py $(ARGS)

.PHONY: servers
servers: $(READY) ## Install what the tests start: PostgreSQL with PgBouncer, MariaDB, Redis, Valkey, etcd, NATS, ZooKeeper, DynamoDB Local, RabbitMQ, Chromium, Prometheus
	@$(BIN)/python scripts/servers.py

.PHONY: $(SERVERS:%=test-%)
$(SERVERS:%=test-%): test-%: $(READY)
	@$(BIN)/python scripts/servers.py $*
	@$(BIN)/pytest -m $* -n $(WORKERS) $(ARGS)
test-postgres: ## Only the tests that need PostgreSQL
test-mariadb: ## Only the tests that need MariaDB
test-redis: ## Only the tests that need Redis
test-valkey: ## Only the tests that need Valkey
test-etcd: ## Only the tests that need etcd
test-nats: ## Only the tests that need NATS
test-zookeeper: ## Only the tests that need ZooKeeper
test-dynamodb: ## Only the tests that need DynamoDB Local

# MongoDB is no part of `make test`: its server comes with Wine.
.PHONY: test-mongodb
test-mongodb: $(READY) ## The tests that need MongoDB; installs it where it can, with Wine
	@$(BIN)/python scripts/servers.py mongodb
	@$(BIN)/pytest --long -m mongodb $(ARGS)

.PHONY: test-azurite
test-azurite: $(READY) ## The tests that need Azurite, which stands in for Azure Blob Storage; installs it where it can
	@$(BIN)/python scripts/servers.py azurite
	@$(BIN)/pytest --long -m azurite $(ARGS)

# MySQL cannot be had where the other servers come from: name one of yours.
.PHONY: test-mysql
test-mysql: $(READY) ## The conformance tests on a MySQL: SOLOCRON_TEST_MYSQL=mysql://user@host/db make test-mysql
	@[ -n "$$SOLOCRON_TEST_MYSQL" ] || { echo "set SOLOCRON_TEST_MYSQL=mysql://user:password@host/database" >&2; exit 2; }
	@$(BIN)/pytest tests/stores/mariadb/test_mysql.py $(ARGS)

# --- the proof -------------------------------------------------------------------------------------------------------

.PHONY: simulate
simulate: $(READY) ## Put the engine through simulated faults for about two minutes
	@$(BIN)/python -m proof simulate --seeds 150 --hours 0.4 --jobs $(JOBS) $(ARGS)

.PHONY: mutants
mutants: $(READY) ## Put every bug of the list into the code: each must be noticed
	@$(BIN)/python -m proof mutants $(ARGS)

.PHONY: proof
proof: $(READY) ## The long gate, most of an hour on two cores; goes on where it was interrupted, and writes its report
	@$(BIN)/python -m proof gate --jobs $(JOBS) --report $(ARGS)

.PHONY: chaos
chaos: servers ## Real nodes on real servers under every fault of the matrix, in about twenty-five minutes
	@$(BIN)/python -m proof chaos $(ARGS)

.PHONY: handover
handover: servers ## Nodes, beats and workers of every queue, every message twice, kills in between; some twenty minutes
	@$(BIN)/python -m proof handover $(ARGS)

.PHONY: coverage
coverage: servers ## Run every test and show the lines that none has reached
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest $(ARGS)
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

# Absolute figures want a quiet machine; the peers run beside us, each in an environment of its own.
.PHONY: bench bench-quick bench-locks
bench: servers ## Measure everything, peers included (half an hour), into the docs: make bench ARGS="burst peers"
	@$(BIN)/python -m bench --page $(ARGS)
bench-quick: servers ## The same in small and without the peers, in some minutes
	@$(BIN)/python -m bench --quick $(or $(ARGS),burst nodes lateness statements idle scale fair takeover memory import next start)

bench-locks: servers ## Locks beside redis-py's, python-redis-lock and an advisory lock, on the same servers
	@$(BIN)/python -m bench.locks $(ARGS)

# --- upkeep ----------------------------------------------------------------------------------------------------------

.PHONY: lock
lock: ## Write requirements/dev.txt anew after a change of dependencies
	@$(PYTHON) scripts/lock.py $(ARGS)

.PHONY: clean
clean: ## Remove .venv and everything that was built
	@rm -rf .venv dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage .coverage.*
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
