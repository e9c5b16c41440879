# What people do daily. `just` alone does what CI does.

default: lint test

# What CI runs before the tests.
lint:
    cargo fmt --all --check
    cargo clippy --profile test --workspace --all-targets --locked -- -D warnings
    RUSTDOCFLAGS="-D warnings" cargo doc --profile test --workspace --no-deps --locked

# What CI runs.
test:
    cargo test --workspace --locked

# The tests of one crate that have this in their names: `just one isolde-checker causal`.
one crate name="":
    cargo test -p {{crate}} --locked {{name}}

# Rules of the tree itself: lengths, links, tables, arrows between crates.
tidy:
    cargo test -p isolde-tidy --locked

# Verdicts, certificates and explanations of many random histories (half an hour).
random count="100000":
    ISOLDE_RANDOM_HISTORIES={{count}} cargo test --release -p isolde-checker --test properties -- random

# Licences and advisories.
deny:
    cargo deny --locked check
