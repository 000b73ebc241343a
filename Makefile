# Chores by their short names. Each sets up the machine first, which costs nothing if all is there.

# What a user's PATH may lack: rustup's default place and the administrator's tools.
export PATH := $(PATH):$(HOME)/.cargo/bin:/usr/local/sbin:/usr/sbin:/sbin

CARGO_TARGET_DIR ?= target
PREFIX ?= /usr/local
# Cargo runs as the user; root runs finished binaries only.
AS_ROOT := $(if $(filter 0,$(shell id -u)),,$(if $(shell command -v sudo),sudo))
IOSTEP := $(CARGO_TARGET_DIR)/release/iostep

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the command, optimised
	scripts/setup build
	cargo build --release --package iostep --bin iostep

.PHONY: demo
demo: ## Build, then show the main job on a throw-away ext4 image (root, or else a guest)
	scripts/setup demo
	cargo build --release --package iostep --bin iostep --no-default-features --features trace \
	    --config .cargo/demo.toml
	rm -f $(IOSTEP)-demo
	mv $(IOSTEP) $(IOSTEP)-demo
	if [ -n "$(AS_ROOT)" ] && $(AS_ROOT) -v; then $(AS_ROOT) $(IOSTEP)-demo demo; \
	else $(IOSTEP)-demo demo; fi

.PHONY: docs-demo
docs-demo: build ## Run the demo and print what it says into README and docs/explain.md (root)
	scripts/reprint-demo $(IOSTEP)

.PHONY: test
test: ## Check everything: format, lints, docs, licences, unit and kernel tests
	scripts/setup test
	cargo xtask ci

.PHONY: test-kernels
test-kernels: ## Run the tests of guests on every kernel that is supported (root, 15 min)
	scripts/setup test
	cargo xtask kernels

.PHONY: test-pages
test-pages: ## Look at the pages of `iostep serve` in Chromium, which is installed (1 min)
	scripts/setup test
	scripts/setup pages
	cargo test --workspace --locked --test pages
	cargo xtask browser

.PHONY: test-kills
test-kills: ## Kill the server, its exports and migrations and writers of a lake 500 times each (long)
	scripts/setup test
	IOSTEP_KILLS=500 cargo test --workspace --locked --lib --test command --test lake -- \
	    --test-threads 1 a_killed_server valid_results_are_once a_migration_that_is_killed \
	    a_writer_that_is_killed

.PHONY: fleet-engine
fleet-engine: ## Build the engine of `iostep fleet sql` and `ask`, optimised (15 min the first time)
	scripts/setup build
	CARGO_TARGET_DIR=$(CARGO_TARGET_DIR) cargo build --release --locked \
	    --manifest-path fleet/engine/Cargo.toml

.PHONY: test-fleet
test-fleet: ## Ask DataFusion, DuckDB, Spark and ClickHouse ten questions on 5 million segments (long)
	scripts/setup build
	scripts/setup fleet
	scripts/test-fleet

.PHONY: test-arm64
test-arm64: ## Run what is built for arm64, under emulation and on its kernels in guests (root)
	scripts/setup test
	cargo xtask arm64

.PHONY: test-sqlite
test-sqlite: ## Run SQLite's own tests on waldio, in every layout (long)
	scripts/sqlite-suite

.PHONY: test-crash
test-crash: ## Lose power under ext4, xfs and f2fs, 2,000 moments of each (root, 30 min)
	scripts/setup test
	cargo build --package iostep
	$(MAKE) -C waldio CC=cc build/cc/test-crash
	$(AS_ROOT) scripts/crash-states

.PHONY: fuzz
fuzz: ## Look for inputs that break a reader, a minute each (25 min the first time)
	scripts/setup fuzz
	scripts/fuzz

.PHONY: bench-trace
bench-trace: ## Measure what tracing costs, with and without by turns (root)
	scripts/setup test
	cargo build --release --package iostep --bin iostep
	$(AS_ROOT) bench/overhead $(abspath $(IOSTEP))

.PHONY: bench-busy
bench-busy: ## Trace busy disks 200 times, and 100 times with a fault (root, 10 min)
	scripts/setup test
	cargo build --release --package iostep --bin iostep
	$(AS_ROOT) bench/busy $(abspath $(IOSTEP))

.PHONY: bench-accuracy
bench-accuracy: ## Compare what bench measures with fio, by turns (root, 32 min)
	scripts/setup test
	cargo build --release --package iostep --bin iostep
	$(AS_ROOT) bench/accuracy $(abspath $(IOSTEP))

.PHONY: bench-record
bench-record: ## Compare what recording system calls costs with strace, by turns (root)
	scripts/setup test
	cargo build --release --package iostep --bin iostep
	$(AS_ROOT) bench/record $(abspath $(IOSTEP))

.PHONY: bench-cost
bench-cost: ## Measure what bench itself costs per operation (root)
	scripts/setup test
	cargo build --release --package iostep --bin iostep
	$(AS_ROOT) bench/own-cost $(abspath $(IOSTEP))

.PHONY: bench-sqlite-loop
bench-sqlite-loop: ## Compare bench's SQLite transactions with a plain loop's (root)
	scripts/setup test
	cargo build --release --package iostep --bin iostep
	$(AS_ROOT) bench/sqlite-loop $(abspath $(IOSTEP))

.PHONY: bench-labs
bench-labs: ## Run the built-in labs and print them into docs/results/labs.md (root, half an hour)
	scripts/setup test
	cargo build --release --package iostep --bin iostep
	$(AS_ROOT) bench/lab-results $(abspath $(IOSTEP)) $(or $(LABS),/var/tmp/iostep-labs)

.PHONY: bench-waldio
bench-waldio: ## Compare waldio with stock SQLite and others, by turns (root, 10 min)
	scripts/setup test
	cargo build --release --package iostep --bin iostep
	$(AS_ROOT) bench/waldio $(abspath $(IOSTEP)) $(or $(WALDIO),/var/tmp/iostep-waldio) $(BENCH_WALDIO)

.PHONY: bench-serve
bench-serve: ## Measure uploads and rankings of the server, waldio and stock WAL by turns (40 min, 8 GB)
	scripts/setup test
	cargo build --release --package iostep --bin iostep
	cargo build --release --package iostep-serve --example load
	bench/serve $(abspath $(IOSTEP)) $(abspath $(CARGO_TARGET_DIR)/release/examples/load) $(BENCH_SERVE)

.PHONY: bench-fleet
bench-fleet: ## Measure what a lake of 5 million segments costs, to make and to ask (20 min, 1 GB)
	scripts/setup test
	$(MAKE) fleet-engine
	cargo build --release --package iostep --bin iostep
	cargo build --release --package iostep-fleet --example synthetic_fleet
	bench/fleet $(abspath $(IOSTEP)) $(abspath $(CARGO_TARGET_DIR)/release/examples/synthetic_fleet) $(BENCH_FLEET)

.PHONY: bench-clean
bench-clean: ## Measure how fast clean reads and replay loads, and the memory (2 min)
	scripts/setup test
	cargo build --release --package iostep --bin iostep
	bench/clean $(abspath $(IOSTEP))

.PHONY: bench-replay
bench-replay: ## Measure how exactly replay issues calls, beside usleep (1 min)
	scripts/setup test
	cargo build --release --package iostep --bin iostep
	bench/replay $(abspath $(IOSTEP))

.PHONY: dist
dist: ## Build the static programs and the packages below dist/ (25 min)
	scripts/setup dist
	scripts/setup dist-musl
	scripts/dist

.PHONY: dist-arm64
dist-arm64: ## The same for arm64 (15 min)
	scripts/setup dist-arm64
	scripts/dist aarch64

.PHONY: dist-fleet
dist-fleet: ## Build the package of the engine of `iostep fleet sql`, which `make dist` leaves out (15 min)
	scripts/setup build
	scripts/dist $(shell uname -m)-fleet

.PHONY: android
android: ## Build the phone app below dist/, and check the package (25 min the first time)
	scripts/setup dist-musl
	scripts/setup android
	scripts/dist aarch64-musl
	scripts/android

.PHONY: test-android
test-android: ## Drive the phone app on this machine, as it was compiled and as it is in the APK
	scripts/setup dist-musl
	scripts/setup android
	scripts/dist aarch64-musl
	cargo build --package iostep --bin iostep
	scripts/android test
	scripts/android test-dex

.PHONY: test-dist
test-dist: ## Install what `make dist` built into an empty place, use it, and remove it
	scripts/setup test
	scripts/setup waldio-packages
	scripts/test-dist

SHARE := $(DESTDIR)$(PREFIX)/share
UNIT := $(DESTDIR)$(PREFIX)/lib/systemd/system/iostep-serve.service

.PHONY: install
install: ## Install what `make build` built below PREFIX (/usr/local)
	@test -x $(IOSTEP) || { echo "$(IOSTEP) is not built; run make build first" >&2; exit 1; }
	install -D -m 755 $(IOSTEP) $(DESTDIR)$(PREFIX)/bin/iostep
	umask 022 && $(IOSTEP) __manual $(SHARE)
	install -d $(dir $(UNIT))
	umask 022 && sed 's|=/usr/bin/|=$(PREFIX)/bin/|' packaging/iostep-serve.service >$(UNIT)

.PHONY: uninstall
uninstall: ## Remove what `make install` installed
	rm -f $(DESTDIR)$(PREFIX)/bin/iostep $(UNIT) $(SHARE)/man/man1/iostep.1 $(SHARE)/man/man1/iostep-*.1 \
	    $(SHARE)/bash-completion/completions/iostep \
	    $(SHARE)/fish/vendor_completions.d/iostep.fish $(SHARE)/zsh/site-functions/_iostep
