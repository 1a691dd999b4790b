# `make demo` and `make test` are the two commands of a newcomer; both install what is missing first (Debian).
# Everything is built in release, so that no target builds a crate twice.

.PHONY: demo check test test-fast test-pyroscope chaos setup fmt clippy links docs bench dist

# A synthetic fleet with a canary through the real dataflow.
demo:
	scripts/setup.sh build
	cargo run --release -- demo

# What needs no test run: format, lints, links, and the documentation of every crate.
check: setup fmt clippy links docs

fmt:
	cargo fmt --all --check

clippy:
	cargo clippy --release --workspace --all-targets -- -D warnings

links:
	scripts/check-links.sh

docs:
	RUSTDOCFLAGS="-D warnings" cargo doc --release --workspace --no-deps --document-private-items

# Every test: a real Kafka broker, a real browser, Python readers, and simulated fleets.
# Property tests draw from this seed, so that a change is not refused for what it did not do; others: make test PROPTEST_RNG_SEED=2.
export PROPTEST_RNG_SEED ?= 1

# Tests with a broker or a command wait for most of their time: twice as many at a time as there are processors.
export RUST_TEST_THREADS ?= $(shell expr 2 \* $$(nproc))

test: setup links
	cargo test --release --workspace

# Every test that needs no broker, browser, Python or long simulation: under a minute once built.
test-fast:
	scripts/test-fast.sh

# `make test` has answers that a server of Pyroscope gave; this asks a real one, whose program is named: make test-pyroscope PYROSCOPE=/usr/bin/pyroscope
test-pyroscope:
	@test -x "$(PYROSCOPE)" || { echo "name the program of a server of Pyroscope: make test-pyroscope PYROSCOPE=/usr/bin/pyroscope" >&2; exit 2; }
	FLEETDIFF_PYROSCOPE=$(abspath $(PYROSCOPE)) cargo test --release --workspace --test commands -- pyroscope

# The long form of the faults in `make test`: 200 kills at random moments in 40 rounds, and more moments of each commit. The seed is
# printed, and draws the same again: make chaos FLEETDIFF_CHAOS_SEED=1764414000
chaos: export FLEETDIFF_CHAOS_SEED := $(or $(FLEETDIFF_CHAOS_SEED),$(shell date +%s))
chaos: export FLEETDIFF_CHAOS_ROUNDS ?= 40
chaos: setup
	@echo "FLEETDIFF_CHAOS_SEED=$(FLEETDIFF_CHAOS_SEED) FLEETDIFF_CHAOS_ROUNDS=$(FLEETDIFF_CHAOS_ROUNDS)"
	cargo test --release --workspace --test kafka -- chaos --nocapture

setup:
	scripts/setup.sh

bench:
	scripts/setup.sh build
	cargo bench --profile dist -p fleetdiff-benches

# The program as it is given to others: target/dist/fleetdiff-<version>-<target>.tar.gz.
dist:
	scripts/setup.sh build
	scripts/dist.sh
