# The program alone, on what a dynamically linked one needs: libc, libm, libgcc_s.
#
#   docker build --build-arg COMMIT="$(git rev-parse --short=12 HEAD)" -t isolde .
#   docker run --rm -v "$PWD:/work" isolde check history.edn

FROM rust:1-slim-trixie AS build
WORKDIR /src
COPY . .
ARG COMMIT=""
RUN ISOLDE_COMMIT="$COMMIT" cargo build --profile dist --locked -p isolde-cli

FROM gcr.io/distroless/cc-debian13
COPY --from=build /src/target/dist/isolde /usr/bin/isolde
WORKDIR /work
ENTRYPOINT ["/usr/bin/isolde"]
