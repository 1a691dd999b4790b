#!/bin/bash
# Installs what fleetdiff needs and this system lacks; without anything missing it does nothing and needs no network.
#
#   scripts/setup.sh          what the build and the tests need
#   scripts/setup.sh build    what the build needs
#
# Each need is asked of the system itself (a command, a library), not of a package list, so a system that is not Debian
# passes too once it has them. Packages are installed by apt-get, through sudo unless run as root.
set -euo pipefail

purpose=${1:-test}
case $purpose in
build | test) ;;
*)
    echo "setup: unknown purpose '$purpose'; use: scripts/setup.sh [build|test]" >&2
    exit 2
    ;;
esac

missing=()

# need PACKAGE COMMAND...: PACKAGE is missing if COMMAND fails.
need() {
    local package=$1
    shift
    "$@" >/dev/null 2>&1 || missing+=("$package")
}

has_browser() { command -v chromium || command -v chromium-browser || command -v google-chrome || command -v google-chrome-stable; }
has_perf() { perf --version; }
has_alertmanager() { command -v prometheus-alertmanager; }
has_prometheus() { command -v prometheus && command -v promtool; }
has_systemd_analyze() { command -v systemd-analyze; }
has_compilers() { command -v cc && command -v c++ && command -v make; }
# A library counts as installed if pkg-config knows it, or, if pkg-config itself is missing, if its header exists.
has_library() {
    if command -v pkg-config; then pkg-config --exists "$1"; else [ -e "/usr/include/$2" ]; fi
}

# librdkafka is compiled from its sources (C and C++, by make) against the system's TLS and zlib; zstd is compiled along.
need build-essential has_compilers
need pkg-config command -v pkg-config
need libssl-dev has_library openssl openssl/ssl.h
need zlib1g-dev has_library zlib zlib.h
if [ "$purpose" = test ]; then
    # The tests start a real Kafka broker, whose jars Maven fetches, read output folders from Python, and open the page
    # of a comparison in a browser. perf records a program, and its own comparison is checked against ours.
    need default-jre-headless java -version
    need maven command -v mvn
    need python3 command -v python3
    need python3-venv python3 -c 'import venv, ensurepip'
    need chromium has_browser
    need linux-perf has_perf
    # Incidents are sent to a real Alertmanager.
    need prometheus-alertmanager has_alertmanager
    # A service is scraped by a real Prometheus, whose promtool checks the rules of alerts.
    need prometheus has_prometheus
    # The unit of the service is checked by systemd. (Go, which checks the chart, is installed by the test if it is missing.)
    need systemd has_systemd_analyze
fi

if [ "${#missing[@]}" -gt 0 ]; then
    if ! command -v apt-get >/dev/null; then
        echo "setup: missing, by their Debian names: ${missing[*]}" >&2
        echo "setup: this system has no apt-get; install their equivalents and run this again" >&2
        exit 1
    fi
    as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null; then
            echo "setup: missing: ${missing[*]}; run as root: apt-get install -y ${missing[*]}" >&2
            exit 1
        fi
        as_root=(sudo)
    fi
    echo "setup: installing ${missing[*]}" >&2
    "${as_root[@]}" apt-get update -q
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
    # Debian starts these as services where it can; the tests start their own.
    for service in prometheus prometheus-alertmanager prometheus-node-exporter; do
        if [[ " ${missing[*]} " == *" prometheus"* ]] && command -v systemctl >/dev/null; then
            "${as_root[@]}" systemctl disable --now "$service" >/dev/null 2>&1 || true
        fi
    done
fi

if ! command -v cargo >/dev/null; then
    echo "setup: cargo is missing; install Rust 1.95 or later from https://rustup.rs" >&2
    exit 1
fi
