# The two commands of a newcomer are `make demo` and `make test`; both install what is missing first (Debian).
# One profile, release, everywhere. Tests bring features of their own to some dependencies, which are then built once more.

.PHONY: demo test setup links lint bench dist

demo:
	scripts/setup.sh build
	cargo run --release -- demo

# The links come first since they take a second; what cargo says comes last. The check of tests/readers runs within
# cargo's tests (connectors/tests/parquet_readers.rs), on a folder whose contents that test knows.
test: setup links
	cargo test --release --workspace

setup:
	scripts/setup.sh

links:
	scripts/check-links.sh

lint: links
	cargo clippy --release --workspace --all-targets -- -D warnings

bench:
	scripts/setup.sh build
	cargo bench -p fleetdiff-benches

# The program as it is given to others: target/dist/fleetdiff-<version>-<target>.tar.gz.
dist:
	scripts/setup.sh build
	scripts/dist.sh
