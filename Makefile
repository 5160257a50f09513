# codemode-bridge: build, tests and measures. `make` alone lists the targets.
#
# Needed: Go and git. `make check` uses a C compiler too (race detector), and
# `make test-real` Node 22; both say so, and .ci/run installs them.

GO       ?= go
CONFIG   ?= config.example.json
FUZZTIME ?= 10s
CHAOS    ?= 5m
STORM    ?= 15m

# Without cgo, so that the programs, their tests and the linters share what is
# compiled. Static binaries: the worker's sandbox is tighter and starts faster
# without libc. Only the race detector needs cgo.
export CGO_ENABLED = 0
# Without the folder's name in what is compiled, which a program that is given
# away has no use for: every clone shares one build cache.
export GOFLAGS := $(shell $(GO) env GOFLAGS) -trimpath
BUILD = $(GO) build -ldflags '-s -w'
# `make lint` vets, with more build tags than one test run has.
TEST  = $(GO) test -vet=off

# Most tests wait now and then, for a process or for time to pass: more
# packages and tests run at once than there are processors, and the packages
# that take longest begin first.
SIDE_BY_SIDE = -p 4 -parallel 4
LONGEST      = ./cmd/codemode-bridge ./sandbox ./bridge ./bridge/upstream

# The packages in which goroutines meet: they or their tests have a go
# statement, a channel or something of sync. A test in cmd/codemode-bridge
# holds the list to that.
RACE = ./.ci/mutants ./.ci/release ./analysis ./bridge ./bridge/access ./bridge/admin ./bridge/approval ./bridge/approvalview ./bridge/audit ./bridge/bench \
	./bridge/bench/asking ./bridge/bench/flows ./bridge/catalog ./bridge/centre ./bridge/certificate ./bridge/config ./bridge/confirmed ./bridge/dialogs \
	./bridge/doctor ./bridge/documents ./bridge/elicit ./bridge/enrolment ./bridge/forms ./bridge/gate ./bridge/handles ./bridge/identity ./bridge/include \
	./bridge/instance ./bridge/learned ./bridge/ledger ./bridge/lifecycle ./bridge/login ./bridge/mcphttp ./bridge/memstore ./bridge/metrics \
	./bridge/notify ./bridge/observed ./bridge/openapi ./bridge/pending ./bridge/pgstore ./bridge/pins ./bridge/provenance ./bridge/push \
	./bridge/questions ./bridge/recorder ./bridge/relay ./bridge/replay ./bridge/replica ./bridge/roots ./bridge/rpc ./bridge/scripts ./bridge/seal \
	./bridge/secrets ./bridge/sqlstore ./bridge/sso ./bridge/stopwatch ./bridge/takeover ./bridge/trace ./bridge/turns ./bridge/upstream \
	./bridge/upstream/tap ./bridge/view ./bridge/watch ./bridge/watchfile ./bridge/webguard ./bridge/wording ./bridge/workspace ./cmd/codemode-bridge \
	./cmd/codemode-bridge/cli ./cmd/codemode-bridge/policycmd ./cmd/codemode-bridge/running ./cmd/codemode-bridge/servecmd ./cmd/codemode-bridge/statuscmd \
	./cmd/codemode-bridge/storecmd ./cmd/codemode-bridge/telemetry ./cmd/codemode-bridge/upstreams ./profiles ./profiles/flow ./profiles/known \
	./profiles/templates ./sandbox ./sandbox/confine ./sandbox/intl ./sandbox/realm ./sandbox/source ./sandbox/web ./sandbox/wire ./sandbox/worker

# Of these, the packages whose tests start themselves as children: see package racing.
CHILDREN = ./bridge ./bridge/sqlstore ./bridge/upstream ./sandbox ./sandbox/worker

.DEFAULT_GOAL := help
.PHONY: help build run test check fmt lint vuln race cross test-real test-release storm soak bench bench-parts bench-replicas bench-asking bench-flows bench-context mutants fuzz frozen pictures release pages clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/codemode-bridge and bin/codemode-worker
	$(BUILD) -o bin/ ./cmd/codemode-bridge ./cmd/codemode-worker

run: build ## build and serve $(CONFIG) on 127.0.0.1
	bin/codemode-bridge serve --config $(CONFIG)

# The hundreds of short processes need no collector before 16 MB.
test: ## all tests that need nothing beyond Go
	GOGC=400 $(TEST) -timeout 20m $(SIDE_BY_SIDE) $(LONGEST) ./... ./.ci/mutants ./.ci/pages ./.ci/release

check: fmt lint vuln race cross ## format, vet, staticcheck, govulncheck, race detector, cross-builds

fmt: ## refuse Go files that gofmt would change
	@out=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')) && [ -z "$$out" ] || { echo "gofmt would change:"; echo "$$out"; exit 1; }

lint: ## go vet and staticcheck, also with the build tags of test-real and soak
	$(GO) vet -tags real,long ./... ./.ci/mutants ./.ci/pages ./.ci/release
	$(GO) tool staticcheck -tags real,long ./... ./.ci/mutants ./.ci/pages ./.ci/release

vuln: ## govulncheck, where it can be had and reach its database
	.ci/vuln

# Tests of the programs themselves, of documents and of the house are left out: the
# detector does not see into programs that a test starts (package racing), and those
# that play a part are built without it. -short plays fewer of the generated schedules.
# Nor does it watch SQLite, which is C made into Go: there it finds nothing of ours, and
# the tests of the store take six times as long. What reaches SQLite goes through
# database/sql, which it does watch.
race: export UNRACED_TESTS = $(CURDIR)/.cache/unraced
race: ## the race detector over the packages in which goroutines meet
	mkdir -p $(UNRACED_TESTS)
	$(TEST) -c -o $(UNRACED_TESTS)/ $(CHILDREN)
	CGO_ENABLED=1 $(TEST) -race '-gcflags=modernc.org/...=-race=false' -short -timeout 20m $(SIDE_BY_SIDE) $(LONGEST) $(RACE)

cross: ## build and vet for macOS and Windows
	GOOS=darwin GOARCH=arm64 $(GO) vet ./...
	GOOS=darwin GOARCH=arm64 $(GO) build ./...
	GOOS=windows GOARCH=amd64 $(GO) vet ./...
	GOOS=windows GOARCH=amd64 $(GO) build ./...

test-real: ## npm reference servers, TypeScript clients and readers of Markdown against the real binary
	.ci/real-install
	PATH="$${REAL_CACHE:-$(CURDIR)/.cache/real}/node/bin:$$PATH" $(TEST) -tags real -count=1 -p 2 -parallel 4 -timeout 60m -run '^TestReal' \
		./cmd/codemode-bridge ./bridge/pgstore ./bridge/sqlstore ./bridge/centre ./bridge ./bridge/bench ./bridge/bench/asking

# Two or three minutes; no part of .ci/run.
test-release: ## each package of a release (archive, deb, rpm, npm, .mcpb) installed on a bare tree, used by TypeScript clients, removed without remains
	.ci/real-install release
	PATH="$${REAL_CACHE:-$(CURDIR)/.cache/real}/node/bin:$$PATH" $(TEST) -tags real -count=1 -timeout 30m -run '^TestRelease' ./cmd/codemode-bridge

pictures: ## draw the pictures of the README anew, from the real thing; needs Chromium (test-real compares their words)
	$(TEST) -tags real -count=1 -run '^TestRealPictures$$' ./cmd/codemode-bridge -update

storm: ## three bridges with one database, killed, frozen, cut off and ended at random while calls are made (STORM=15m; it says its STORM_SEED)
	STORM=$(STORM) $(TEST) -tags real,long -count=1 -timeout 24h -run '^TestStorm$$' -v ./cmd/codemode-bridge

soak: ## the long forms: bridges killed at every entry of 50 journals, 50,000 large answers, a million random calls decided twice, a million around wider yeses, profiles learnt from half of each session, and minutes of chaos (CHAOS=5m)
	$(TEST) -count=1 -timeout 60m -run NaiveEvaluator -v ./profiles -rapid.checks=62500
	UPSTREAM_CHAOS=$(CHAOS) $(TEST) -tags long -count=1 -p 1 -timeout 60m -run '^TestLong' -v ./bridge ./bridge/gate ./bridge/upstream ./sandbox ./cmd/codemode-bridge
	$(TEST) -tags real,long -count=1 -timeout 60m -run '^TestLongLearnt' -v ./bridge/bench/asking

# Under four minutes, on a machine that does nothing else. `make bench PAGE=docs/engine.md` writes the table there.
bench: build ## what is promised about speed, beside direct calls of the same minute: a table with targets
	$(GO) run ./bridge/bench -bridge bin/codemode-bridge $(if $(PAGE),-page $(PAGE))

bench-parts: ## Go benchmarks of what bench measures as a whole: policy, gate, store, metrics, traces, replay, worker
	$(GO) test -run '^$$' -bench 'Decide|Parse|Script|Call' ./profiles ./analysis/preview ./bridge/gate
	$(GO) test -run '^$$' -bench 'Record|Verify|Query|Journal|Open' ./bridge/sqlstore
	$(GO) test -run '^$$' -bench 'Record|Run' ./bridge/metrics ./cmd/codemode-bridge/telemetry
	$(GO) test -run '^$$' -bench 'Replay|Resume|Message' ./bridge ./bridge/rpc
	$(GO) test -run '^$$' -bench 'Run|Reply|Strip|Decode' ./sandbox/worker ./sandbox/source ./sandbox/values

# Some three minutes, on a machine that does nothing else. Needs PostgreSQL's server programs.
bench-replicas: build ## bridges with one store in PostgreSQL: its price, 1,000 sessions, questions across bridges: tables of docs/deploy/scale.md
	.ci/real-install postgres
	$(GO) run ./bridge/bench -bridge bin/codemode-bridge -replicas -page docs/deploy/scale.md

# BEFORE=PROGRAM plays what was the default before with that older bridge.
bench-asking: build ## how often a person is asked in ordinary work, and which harmful calls get through: writes docs/asking.md
	$(GO) run ./bridge/bench/asking -bridge bin/codemode-bridge -before '$(BEFORE)' -dialogs .cache/asking -page docs/asking.md

bench-flows: ## which attacks get private text out, without rules about flows and with them: writes the table in docs/flows.md
	$(GO) run ./bridge/bench/flows -page docs/flows.md

# Needs Node 22 and npm; MODEL=1 has a model do the tasks by your own key.
bench-context: build ## how much a model reads: tools listed, found by search, and through the bridge: writes docs/context.md
	mkdir -p .cache/context
	cp bridge/bench/context/packages/package.json bridge/bench/context/packages/package-lock.json bridge/bench/context/packages/.npmrc .cache/context/
	cd .cache/context && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	$(GO) run ./bridge/bench/context -bridge bin/codemode-bridge -packages .cache/context $(if $(MODEL),-model,-page docs/context.md)

mutants: ## seeded faults: each must make the suite fail
	$(GO) run ./.ci/mutants

fuzz: ## every fuzz target for $(FUZZTIME)
	.ci/fuzz $(FUZZTIME)

frozen: ## keep what this program writes as cmd/codemode-bridge/testdata/frozen/$(NAME), for later formats to read
	@[ -n "$(NAME)" ] || { echo "usage: make frozen NAME=$$(git rev-parse --short HEAD)"; exit 2; }
	$(GO) test ./cmd/codemode-bridge -count=1 -run '^TestFrozen$$' -freeze '$(NAME)'

release: ## all packages of release $(VERSION), their checksums and what they are made of, in dist/$(VERSION) (docs/install.md)
	@[ -n "$(VERSION)" ] || { echo "usage: make release VERSION=1.2.3 [REPOSITORY=https://github.com/OWNER/NAME] [DOCS=https://...]"; exit 2; }
	$(GO) run ./.ci/release -version '$(VERSION)' -repository '$(REPOSITORY)' -docs '$(DOCS)' -out 'dist/$(VERSION)'

pages: ## the documents as HTML, with every link checked, in dist/pages
	rm -rf dist/pages
	$(GO) run ./.ci/pages -out dist/pages

clean: ## remove what was built and cached
	rm -rf bin dist .cache
