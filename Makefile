.PHONY: help sync run test lint format schema bench docs clean
.DEFAULT_GOAL := help

help: ## show this
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 10

sync: ## build the extension and the environment (after every change in rust/)
	uv sync

run: ## the main job on the data in this repository
	uv run rageval-spec run specs/quickstart.yaml

test: ## all tests, Rust and Python
	cargo test --workspace
	uv run pytest

lint: ## everything that CI checks beside the tests
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	uv run ruff format --check .
	uv run ruff check .
	uv run lint-imports
	uv run mypy
	uv run python -m mypy.stubtest rageval_spec._core
	uv run python -m rageval_spec.spec.json_schema --check
	uv run python docs/readme.py --check

format: ## bring the sources into shape
	cargo fmt --all
	uv run ruff format .
	uv run ruff check --fix .

schema: ## write schemas/spec.schema.json and the lists in README.md anew, after a change to a plugin
	uv run python -m rageval_spec.spec.json_schema --write
	uv run python docs/readme.py --write

bench: ## kernels with criterion; the side-by-side scripts are in benches/
	cargo bench -p rageval-core

docs: ## the Rust crate's documentation
	cargo doc --no-deps -p rageval-core

clean: ## remove what builds leave behind
	cargo clean
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis
