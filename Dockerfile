# The program in a small image. The build context has no repository, so the commit is given by hand:
#   docker build --build-arg FLEETDIFF_BUILD_COMMIT="$(git rev-parse --short=12 HEAD)" --tag fleetdiff .
#   docker run --rm fleetdiff demo
#   docker run --rm --volume "$PWD:/data" --user "$(id -u)" fleetdiff watch --config fleetdiff.toml
FROM rust:1.95-bookworm AS build
ARG FLEETDIFF_BUILD_COMMIT
WORKDIR /source
COPY . .
RUN make dist && mkdir /dist && tar --extract --gzip --file target/dist/fleetdiff-*.tar.gz --directory /dist --strip-components 1

FROM debian:bookworm-slim
# TLS to brokers: the library that librdkafka is linked with, and the certificates that it trusts.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates libssl3 zlib1g \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin fleetdiff \
    && install --directory --owner fleetdiff /data
COPY --from=build /dist/fleetdiff /usr/local/bin/fleetdiff
COPY --from=build /dist/LICENSE-APACHE /dist/LICENSE-MIT /usr/share/doc/fleetdiff/
USER fleetdiff
WORKDIR /data
ENTRYPOINT ["fleetdiff"]
CMD ["--help"]
