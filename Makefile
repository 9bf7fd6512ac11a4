.PHONY: help sync run test lint format schema site bench docs docs-check extras release-check clean
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 16

sync: ## build the extension and the environment (after each change in rust/)
	uv sync

run: ## run the quickstart
	uv run rageval-spec run specs/quickstart.yaml

test: ## run all tests, Rust and Python
	cargo test --workspace
	uv run pytest -n auto

lint: ## the linters that CI runs
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	uv run ruff format --check .
	uv run ruff check .
	uv run lint-imports
	uv run mypy
	uv run python -m mypy.stubtest rageval_spec._core
	uv run python -m rageval_spec.spec.json_schema --check
	uv run python docs/exchange_table.py --check

format: ## format the sources and fix what ruff can fix
	cargo fmt --all
	uv run ruff format .
	uv run ruff check --fix .

schema: ## write the JSON Schema and the table of tools again, after a change to a plugin or a tool
	uv run python -m rageval_spec.spec.json_schema --write
	uv run python docs/exchange_table.py --write

site: ## build the documentation as static files in build/site/html, and check it
	uv run python docs/site/build.py

bench: ## run the criterion benches; side-by-side scripts are in benches/
	cargo bench -p rageval-core

docs: ## build the documentation of the Rust crate
	cargo doc --no-deps -p rageval-core

docs-check: ## execute every fenced block of the documentation, and build the site; PAGES="docs/gates.md --update" writes what commands print
	uv run python docs/check_blocks.py $(PAGES)
	$(if $(PAGES),,uv run python docs/site/build.py)

extras: ## install each embedded model in an empty environment without an index, and run it (needs an index once)
	packaging/check_extras

release-check: ## build wheel and source archive twice, check them, and install and run them without an index (needs one once)
	uv run --group release python packaging/release_check.py

clean: ## remove build output
	cargo clean
	rm -rf build .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis
