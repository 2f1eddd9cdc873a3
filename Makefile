# Needs make and Python 3.11 or newer; everything else is installed into .venv.
VENV := .venv
INTERPRETERS := python3.11 python3.12 python3.13 python3
PYTHON := $(VENV)/bin/python
MANAGE := $(PYTHON) manage.py
SERVERS := $(PYTHON) -m agency.devtools.embedded
INSTALLED := $(VENV)/.installed
# Three workers for two cores, as tests wait too, each with a database of its own; who is done takes from the other's tests.
WORKERS := --numprocesses $$(( ($$($(PYTHON) -m core.work.processors) * 3 + 1) / 2 )) --maxprocesses 8 --dist worksteal
# What differs between versions of Python: packages with compiled parts, threads, processes, asyncio.
QUICK := tests/test_story.py tests/wallets tests/core --ignore tests/core/api tests/agency/server tests/agency/ops \
	--ignore tests/agency/ops/test_moving.py --ignore tests/agency/ops/test_hostile_imports.py tests/connections/didcomm/test_envelope.py \
	tests/credentials/issue_credential/test_issuing.py tests/verifications/proofs/test_request.py tests/webhooks/delivery/test_call.py
# A part of the promise of each kind: the story, races, repeated calls, killed workers, claims, the feed.
POOLED := tests/test_story.py tests/states/test_races.py tests/core/api/test_contract.py tests/core/api/test_idempotency.py \
	tests/connections/transport/test_killed_worker.py tests/webhooks/delivery/test_fault_points.py \
	tests/webhooks/delivery/test_claiming.py tests/webhooks/delivery/test_order.py tests/webhooks/events/test_feed.py
CLIENTS := tests/clients/node_modules/.installed

.PHONY: help run test test-slow test-pooled test-production test-clients test-interop test-python errors docs-tables tools screenshots lint format check lock sbom pin-images bench install env clean reset
.DELETE_ON_ERROR:
# Else every process that a test starts would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

help:  ## Show the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile

run: $(INSTALLED)  ## Start everything on this machine (PORT=8000); Ctrl-C stops it, data stays in var/
	@exec $(PYTHON) -m agency.devtools.run

test: $(INSTALLED)  ## Run all tests but the slow ones, on all cores (ARGS=... goes to pytest)
	@exec $(PYTHON) -m pytest $(WORKERS) -m "not slow" $(ARGS)

test-slow: $(INSTALLED)  ## Run the slow tests: the product's processes, killed ones, chaos, fuzzing
	@exec $(PYTHON) -m pytest -m slow $(ARGS)

test-clients: $(INSTALLED) $(CLIENTS)  ## Run the stories of the published npm clients and of generated ones (needs Node.js and npm)
	@$(SERVERS) $(PYTHON) -m tests.clients

# Not those of processes of 0.1.0, which needs its sessions, and not the one that kills at random for a minute.
test-pooled: $(INSTALLED)  ## Run stories, races and killed processes behind PgBouncer in transaction mode (make tools)
	@TESTS_POOLER=1 exec $(PYTHON) -m pytest $(POOLED) -k "not former_version and not killed_anywhere" $(ARGS)

test-interop: $(INSTALLED)  ## Run the tests with other agents and a real Indy ledger (docs/interop.md)
	@exec $(PYTHON) -m pytest tests/interop --timeout 600 $(ARGS)

test-production: $(INSTALLED)  ## Run the product with requirements.lock alone, as an operator does (needs the network once)
	@$(SERVERS) $(PYTHON) -m tests.production

# That environment lies below .venv: what ignores or removes the one does so with the other.
test-python:  ## Check another Python and run some tests on it (INTERPRETER=python3.13)
	@$(if $(INTERPRETER),,echo "Say which: make test-python INTERPRETER=python3.13" >&2; exit 1)
	@$(MAKE) --no-print-directory VENV=.venv/$(notdir $(INTERPRETER)) INTERPRETERS=$(INTERPRETER) \
		check test ARGS="$(QUICK) $(ARGS)"

$(CLIENTS): tests/clients/package.json tests/clients/package-lock.json
	@node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' 2>/dev/null && command -v npm >/dev/null || { \
		echo "The npm clients need Node.js 20 or newer with npm: install them, then run make again." >&2; exit 1; }
	@echo "Installing the npm clients into tests/clients/node_modules ..."
	@cd tests/clients && npm ci --loglevel error || { \
		echo "npm could not install the published clients: this needs the network once." >&2; exit 1; }
	@touch $@

errors: $(INSTALLED)  ## Compare the errors that tests got with those of the OpenAPI document (RECORDED_ERRORS=folder)
	@$(if $(RECORDED_ERRORS),,echo "Say where they are: RECORDED_ERRORS=folder make test test-slow errors" >&2; exit 1)
	@$(SERVERS) $(PYTHON) -m tests.measures errors $(RECORDED_ERRORS) $(ARGS)

docs-tables: $(INSTALLED)  ## Write the list of settings in docs/ from the source
	@$(PYTHON) -m tests.docs.settings_table

# After .venv is made: making it would remove what is in it.
tools: | $(PYTHON)  ## Unpack the programs that tests start and this machine has not, on Debian and Ubuntu
	@sh tests/support/tools.sh

screenshots: $(INSTALLED) tools  ## Take pictures of every page, into screenshots/
	@exec $(PYTHON) -m pytest -q tests/agency/pages/take_screenshots.py $(ARGS)

lint: $(INSTALLED)  ## Run the linters and mypy
	@$(PYTHON) -m ruff check .
	@$(PYTHON) -m ruff format --check .
	@$(SERVERS) $(PYTHON) -m mypy

format: $(INSTALLED)  ## Format the code
	@$(PYTHON) -m ruff check --fix .
	@$(PYTHON) -m ruff format .

check: $(INSTALLED)  ## Check migrations, settings and the OpenAPI schema
	@$(SERVERS) $(MANAGE) makemigrations --check --dry-run
	@PUBLIC_URL=https://agency.example ALLOWED_HOSTS=agency.example TRUST_PROXY=1 EMAIL_URL=smtp://mail.example \
		$(SERVERS) $(MANAGE) check --deploy
	@$(SERVERS) $(MANAGE) spectacular --validate --fail-on-warn --file $(VENV)/openapi.yaml
	@$(PYTHON) -m openapi_spec_validator $(VENV)/openapi.yaml

lock: $(INSTALLED)  ## Write requirements.lock: what requirements.txt needs, with hashes (needs the network)
	@$(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--custom-compile-command "make lock" --output-file requirements.lock requirements.txt

sbom: $(INSTALLED)  ## Write sbom.json: CycloneDX, of what runs (needs the network)
	@$(PYTHON) -m venv --clear --without-pip $(VENV)/sbom
	@$(PYTHON) -m pip --python $(VENV)/sbom/bin/python install -qq --disable-pip-version-check --require-hashes -r requirements.lock
	@$(PYTHON) -m pip --python $(VENV)/sbom/bin/python install -qq --disable-pip-version-check --no-deps . && rm -rf build agency.egg-info
	@$(VENV)/bin/cyclonedx-py environment --output-reproducible --of JSON -o sbom.json $(VENV)/sbom/bin/python

pin-images: $(PYTHON)  ## Write the digests of images into docker-compose.yml and the Dockerfile (needs the network)
	@$(PYTHON) deploy/pin_images.py

bench: $(INSTALLED)  ## Run the benchmarks (ARGS=...)
	@exec $(PYTHON) -m bench $(ARGS)

install: $(INSTALLED)  ## Make .venv and install requirements-dev.txt, if it changed

$(INSTALLED): requirements.txt requirements-dev.txt | $(PYTHON)
	@echo "Installing Python packages into $(VENV) ..."
	@$(PYTHON) -m pip install -qq --disable-pip-version-check -r requirements-dev.txt
	@$(PYTHON) -c 'import pathlib, sysconfig; pathlib.Path(sysconfig.get_path("purelib"), "agency.pth").write_text(str(pathlib.Path.cwd()))'
	@echo "Migrating the database of which tests and make run get a copy ..."
	@$(SERVERS) || true
	@touch $@

# Of all interpreters of the first name that is found, the fastest: in turns, as a busy
# machine may slow one of them for a second.
$(PYTHON):
	@for name in $(INTERPRETERS); do \
		python=$$(for turn in 1 2 3 4 5 6 7 8; do { which -a $$name || command -v $$name; } 2>/dev/null | while read -r found; do \
			"$$found" agency/devtools/probe_python.py </dev/null 2>/dev/null; done; done | sort -n | sed -n '1s/^[0-9]* //p'); \
		[ -z "$$python" ] || break; done; \
	if [ -z "$$python" ]; then \
		echo "Agency needs Python 3.11 or newer with its venv module (on Debian and Ubuntu: python3-venv): install it, then run make again." >&2; exit 1; fi; \
	"$$python" -m venv --clear $(VENV) >/dev/null 2>&1 || { rm -rf $(VENV); \
		echo "$$python cannot make a virtual environment: install its venv module (on Debian and Ubuntu: python3-venv)." >&2; exit 1; }

env:  ## Make .env and secrets/, for docker compose; what is there stays
	@sh deploy/make_env.sh

clean:  ## Remove what can be made again: .venv, caches, static files
	@rm -rf .venv tests/clients/node_modules staticfiles .pytest_cache .ruff_cache .mypy_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

reset: $(INSTALLED)  ## Remove all data and keys of `make run`: var/
	@exec $(PYTHON) -m agency.devtools.run reset
