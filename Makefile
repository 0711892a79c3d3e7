# make demo: a cluster from nothing. make test: every test. The other targets are for working on pgherd; see `make help`.

SHELL := /bin/bash
export PATH := $(HOME)/.cargo/bin:$(PATH)
CARGO_TARGET_DIR ?= target
export CARGO_TARGET_DIR
# The tests with Python drivers use it.
export PGHERD_TEST_PYTHON := $(CURDIR)/target/venv/bin/python

# Sizes of the demo; benchmarks, fuzz and sqlsmith have as many workers.
SCALE ?= 10
SECONDS_EACH ?= 5
CLIENTS ?= 8
WORKERS ?= 3
# Of the benchmark: its parts (memory of idle clients, definitions, bars, all combinations), the rows of the bars (BENCH_ONLY=insert,COPY
# for those with such a name), and how long and how often each is measured.
BENCH_PARTS ?= memory,definitions,everyday,bars,matrix
BENCH_ONLY ?=
BENCH_SCALE ?= 50
BENCH_SECONDS ?= 4
BENCH_ROUNDS ?= 5
BENCH_IDLE ?= 10000
# Of the combinations.
BENCH_CLIENTS ?= 1,8,32,128
BENCH_PROTOCOLS ?= simple,extended,prepared
# Of everyday statements.
EVERYDAY_CLIENTS ?= 8,64
EVERYDAY_PROTOCOLS ?= prepared
EVERYDAY_SECONDS ?= 2
EVERYDAY_ROUNDS ?= 3
MATRIX_SECONDS ?= 2
MATRIX_ROUNDS ?= 3
# Of the analytical queries: how many rows (1 is more than 100 MB for each of the two benchmarks), which, how the tables are
# spread, and after how many seconds a query is given up.
ANALYTICS_SCALE ?= 1
ANALYTICS_BENCHMARKS ?= tpch,ch
ANALYTICS_LAYOUTS ?= colocated,apart
ANALYTICS_ROUNDS ?= 3
ANALYTICS_TIMEOUT ?= 60
# The suite of `make regress` and what it leaves; only these files (REGRESS_ONLY=boolean,enum); write the list of known
# differences anew (REGRESS_KNOWN=write); judge what the last run printed once more (REGRESS_AGAIN=yes).
REGRESS_DIR ?= /var/tmp/pgherd-regress
REGRESS_ONLY ?=
REGRESS_KNOWN ?=
REGRESS_AGAIN ?=
REGRESS_WORKERS ?= 2
# Another suite (REGRESS_SUITE=DIRECTORY with sql, expected, data and parallel_schedule) on a PostgreSQL of that major version.
REGRESS_SUITE ?=
REGRESS_PG ?= 18
# Or distributed: every table that can be, and the rows of SELECTs compared. Or iso: the same with ISO styles and plain tables
# for temporary ones, as applications have them.
REGRESS_MODE ?= local
# The suites of `make drivers` and what it leaves; only these (DRIVERS_ONLY=asyncpg,pgx); write the list of known differences
# anew (DRIVERS_KNOWN=write).
DRIVERS_DIR ?= /var/tmp/pgherd-drivers
DRIVERS_ONLY ?=
DRIVERS_KNOWN ?=
DRIVERS_WORKERS ?= 2
# Of the generated statements: the first seed, how long, and statements of each round. What differs is written to FUZZ_DIR.
SEED ?= 1
MINUTES ?= 60
FUZZ_DIR ?= /var/tmp/pgherd-fuzz
FUZZ_STATEMENTS ?= 120
# More options for cargo test, such as TEST="-p pgherd-wire".
TEST ?= --workspace

# Of `make differential`: shapes of clusters (workers x shards), files, and a major version of PostgreSQL (PG=16; else the
# installed one). Of `make versions`: which major versions.
SHAPES ?= all
FILES ?=
PG ?=
VERSIONS ?= 15 16 17 18

.DEFAULT_GOAL := help
.PHONY: help deps build demo test check differential versions sweeps draws leaks sql-docs bench analytics regress drivers fuzz sqlsmith

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 16

deps: ## Install what is missing: compiler, libclang, Rust, psql, pgbench
	@scripts/deps.sh

build: deps ## Build the programs, optimised
	@echo "building (the first time takes some minutes)"
	cargo build --release --locked -p pgherd -p pgherd-bench

demo: build ## Start a cluster, load pgbench's tables, measure it beside one plain PostgreSQL
	@$(CARGO_TARGET_DIR)/release/pgherd-bench demo --scale $(SCALE) --seconds $(SECONDS_EACH) --clients $(CLIENTS) --workers $(WORKERS)

test: ## Build and run every test, those on real clusters too
	@scripts/deps.sh test
	scripts/run_tests.py $(TEST)

check: ## Formatting, clippy without warnings, and every test
	@scripts/deps.sh test
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	scripts/run_tests.py $(TEST)

differential: ## The corpus of tests/differential in every mode on clusters of 1, 2 and 3 workers with 1, 4 and 32 shards
	@scripts/deps.sh test
	@[ -z "$(PG)" ] || [ -x /usr/lib/postgresql/$(PG)/bin/postgres ] || cargo run -q --locked -p pgherd -- download --pg $(PG)
	PGHERD_TEST_PG=$(PG) PGHERD_DIFF_SHAPES=$(SHAPES) PGHERD_DIFF_FILES=$(FILES) cargo test --locked -p pgherd --test differential -- --nocapture

versions: ## The corpus, extensions, everyday statements and guides on the newest PostgreSQL 15, 16, 17 and 18; writes docs/versions.md
	@scripts/deps.sh test
	cargo build --locked -p pgherd
	@scripts/versions.py $(CARGO_TARGET_DIR)/debug/pgherd $(VERSIONS)

sweeps: ## Every setting and every kind of object, beside one PostgreSQL (make test tries a part)
	@scripts/deps.sh test
	PGHERD_SWEEPS=whole cargo test --locked -p pgherd --test sweeps -- --nocapture

draws: ## A million values of sequences while routers are killed (make test draws ten thousand)
	@scripts/deps.sh test
	PGHERD_DRAWS=1000000 cargo test --locked --release -p pgherd --test draws -- --nocapture

leaks: ## What sessions leave for others, by 100,000 generated statements (make test tries some; SEED=1)
	@scripts/deps.sh test
	PGHERD_LEAKS=100000 PGHERD_SEED=$(SEED) cargo test --locked --release -p pgherd --test leaks -- --nocapture

sql-docs: ## Write docs/sql.md: what the corpus covers, and how it is run
	@scripts/deps.sh test
	UPDATE_DOCS=1 cargo test --locked -p pgherd --test sql_docs

bench: build ## Measure against the bars, and all combinations; writes bench/results/<commit>.md and .json
	@$(CARGO_TARGET_DIR)/release/pgherd-bench run --workers $(WORKERS) --scale $(BENCH_SCALE) \
		--parts $(BENCH_PARTS) --only "$(BENCH_ONLY)" --seconds $(BENCH_SECONDS) --rounds $(BENCH_ROUNDS) \
		--idle-clients $(BENCH_IDLE) --clients $(BENCH_CLIENTS) --protocols $(BENCH_PROTOCOLS) \
		--matrix-seconds $(MATRIX_SECONDS) --matrix-rounds $(MATRIX_ROUNDS) \
		--everyday-clients $(EVERYDAY_CLIENTS) --everyday-protocols $(EVERYDAY_PROTOCOLS) \
		--everyday-seconds $(EVERYDAY_SECONDS) --everyday-rounds $(EVERYDAY_ROUNDS)

analytics: build ## Run the shapes of TPC-H and CH-benCHmark beside one plain PostgreSQL; writes bench/results/analytics-<commit>.md
	@$(CARGO_TARGET_DIR)/release/pgherd-bench analytics --workers $(WORKERS) --scale $(ANALYTICS_SCALE) \
		--benchmarks $(ANALYTICS_BENCHMARKS) --layouts $(ANALYTICS_LAYOUTS) --rounds $(ANALYTICS_ROUNDS) \
		--timeout $(ANALYTICS_TIMEOUT)

regress: ## Run PostgreSQL's own regression suite through the router and on one plain PostgreSQL 15, and compare
	@scripts/deps.sh regress
ifneq ($(REGRESS_SUITE),)
	@scripts/deps.sh clients
	cargo build --release --locked -p pgherd -p pgherd-testkit
	@PATH=$(CURDIR)/target/clients/bin:$$PATH PGHERD_TEST_PG_BIN=$${PGHERD_TEST_PG_BIN:-$$($(CARGO_TARGET_DIR)/release/pgherd download --pg $(REGRESS_PG))} \
		$(CARGO_TARGET_DIR)/release/regress program=$(CARGO_TARGET_DIR)/release/pgherd sources=$(REGRESS_SUITE) libraries=none \
		list=$(REGRESS_PG) out=$(REGRESS_DIR)/out$(REGRESS_PG) workers=$(REGRESS_WORKERS) mode=$(REGRESS_MODE) \
		only=$(REGRESS_ONLY) known=$(REGRESS_KNOWN) again=$(REGRESS_AGAIN)
else
	@scripts/regress_suite.sh $(REGRESS_DIR)
	cargo build --release --locked -p pgherd -p pgherd-testkit
	@PGHERD_TEST_PG_BIN=$${PGHERD_TEST_PG_BIN:-/usr/lib/postgresql/15/bin} $(CARGO_TARGET_DIR)/release/regress \
		program=$(CARGO_TARGET_DIR)/release/pgherd sources=$(REGRESS_DIR)/sources libraries=$(REGRESS_DIR)/libraries \
		out=$(REGRESS_DIR)/out workers=$(REGRESS_WORKERS) mode=$(REGRESS_MODE) \
		only=$(REGRESS_ONLY) known=$(REGRESS_KNOWN) again=$(REGRESS_AGAIN)
endif

drivers: ## Run the test suites of drivers and ORMs through the router and on one plain PostgreSQL, and compare
	@scripts/deps.sh drivers
	cargo build --release --locked -p pgherd -p pgherd-testkit
	@$(CARGO_TARGET_DIR)/release/drivers program=$(CARGO_TARGET_DIR)/release/pgherd out=$(DRIVERS_DIR) \
		workers=$(DRIVERS_WORKERS) only=$(DRIVERS_ONLY) known=$(DRIVERS_KNOWN)

fuzz: ## Compare random schemas and statements with one plain PostgreSQL (SEED=1 MINUTES=60)
	@scripts/deps.sh
	cargo build --release --locked -p pgherd -p pgherd-testkit
	@$(CARGO_TARGET_DIR)/release/fuzz program=$(CARGO_TARGET_DIR)/release/pgherd seed=$(SEED) minutes=$(MINUTES) \
		statements=$(FUZZ_STATEMENTS) workers=$(WORKERS) out=$(FUZZ_DIR)

sqlsmith: ## Let sqlsmith loose on a cluster (MINUTES=60): neither the router nor a server may die
	@scripts/deps.sh sqlsmith
	cargo build --release --locked -p pgherd -p pgherd-testkit
	@$(CARGO_TARGET_DIR)/release/sqlsmith program=$(CARGO_TARGET_DIR)/release/pgherd seed=$(SEED) minutes=$(MINUTES) \
		workers=$(WORKERS)
