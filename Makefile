# codemode-bridge: build, tests and measures. `make` alone lists the targets.
#
# Needed: Go and git. `make check` uses a C compiler too (race detector), and
# `make test-real` Node 22; both say so, and .ci/run installs them.

GO       ?= go
CONFIG   ?= config.example.json
FUZZTIME ?= 10s

# Static binaries: the worker's sandbox is tighter and starts faster without libc.
BUILD = CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w'

.DEFAULT_GOAL := help
.PHONY: help build run test check fmt lint vuln race cross test-real bench mutants fuzz frozen clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/codemode-bridge and bin/codemode-worker
	$(BUILD) -o bin/ ./cmd/codemode-bridge ./cmd/codemode-worker

run: build ## build and serve $(CONFIG) on 127.0.0.1
	bin/codemode-bridge serve --config $(CONFIG)

test: ## all tests that need nothing beyond Go
	$(GO) test -timeout 20m ./... ./.ci/mutants

check: fmt lint vuln race cross ## format, vet, staticcheck, govulncheck, race detector, cross-builds

fmt: ## refuse Go files that gofmt would change
	@out=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')) && [ -z "$$out" ] || { echo "gofmt would change:"; echo "$$out"; exit 1; }

lint: ## go vet and staticcheck, also with the build tag of test-real
	$(GO) vet -tags real ./... ./.ci/mutants
	$(GO) tool staticcheck -tags real ./... ./.ci/mutants

vuln: ## govulncheck, where it can be had and reach its database
	.ci/vuln

race: ## all tests under the race detector
	CGO_ENABLED=1 $(GO) test -race -timeout 20m ./... ./.ci/mutants

cross: ## build and vet for macOS and Windows
	CGO_ENABLED=0 GOOS=darwin GOARCH=arm64 $(GO) vet ./...
	CGO_ENABLED=0 GOOS=darwin GOARCH=arm64 $(GO) build ./...
	CGO_ENABLED=0 GOOS=windows GOARCH=amd64 $(GO) vet ./...
	CGO_ENABLED=0 GOOS=windows GOARCH=amd64 $(GO) build ./...

test-real: ## npm reference servers and TypeScript clients against the real binary (UPSTREAM_CHAOS=5m: longer chaos)
	.ci/real-install
	PATH="$${REAL_CACHE:-$(CURDIR)/.cache/real}/node/bin:$$PATH" $(GO) test -tags real -count=1 -p 1 -timeout 30m -run '^TestReal' \
		./cmd/codemode-bridge ./bridge/sqlstore ./bridge ./bridge/upstream

bench: build ## direct calls beside the same through the bridge, as a table with targets
	$(GO) run ./bridge/bench -bridge bin/codemode-bridge
	$(GO) test -run '^$$' -bench 'Decide|Parse|Script|Call' ./profiles ./analysis/preview ./bridge/gate
	$(GO) test -run '^$$' -bench 'Record|Verify|Query|Journal' ./bridge/sqlstore
	$(GO) test -run '^$$' -bench 'Replay|Resume' ./bridge
	$(GO) test -run '^$$' -bench 'Run|Reply|Strip' ./sandbox/worker

mutants: ## seeded faults: each must make the suite fail
	$(GO) run ./.ci/mutants

fuzz: ## every fuzz target for $(FUZZTIME)
	.ci/fuzz $(FUZZTIME)

frozen: ## keep what this program writes as cmd/codemode-bridge/testdata/frozen/$(NAME), for later formats to read
	@[ -n "$(NAME)" ] || { echo "usage: make frozen NAME=$$(git rev-parse --short HEAD)"; exit 2; }
	$(GO) test ./cmd/codemode-bridge -count=1 -run '^TestFrozen$$' -freeze '$(NAME)'

clean: ## remove what was built and cached
	rm -rf bin .cache
