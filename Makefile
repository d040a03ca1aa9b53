# make demo and make test are enough on a Debian machine that has only Go and
# make: hack/setup.sh installs what is missing, and does nothing when all is there.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
PREFIX  ?= /usr/local
BIN     ?= bin
GO      ?= go
LDFLAGS := -s -w -buildid= -X main.version=$(VERSION)
STATICCHECK_VERSION := v0.8.2

# -p 2: packages start sandboxes of their own, and more of them at once than
# the machine has CPUs only makes each slower.
TESTFLAGS ?= -p 2 -timeout 20m

# For each of the parsers. FUZZ=Config is a part of them by name.
FUZZTIME ?= 1m

# How long each part of make soak goes on. SOAKFLAGS="-uid 1000" is an ordinary user.
MINUTES ?= 10

# What make bench measures, in 5 to 8 minutes. BENCHFLAGS="-n 300" is more of each.
PARTS ?= -cold -warm -throughput -memory -overhead -relay 3

.PHONY: all build dist demo test test-host test-quick test-vm test-arm64 check bench bench-images soak fuzz lint profiles check-profiles install uninstall clean help

all: build

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 18

build: ## bin/sandglass, one static file, and beside it sandglass-image, which imports images, and sandglass-mcp, a server for models
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "$(LDFLAGS)" -o bin/sandglass ./cmd/sandglass
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w -buildid=" -o bin/sandglass-image ./cmd/sandglass-image
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "$(LDFLAGS)" -o bin/sandglass-mcp ./cmd/sandglass-mcp

dist: ## what is released, made twice and compared, in build/dist: docs/PACKAGES.md; VERSION=1.2.3 for a release
	$(GO) run ./packaging/dist $(if $(filter command line environment,$(origin VERSION)),-version $(VERSION))

demo: ## install what is missing, build, run the examples, prove the controls
	hack/setup.sh demo
	$(MAKE) build
	examples/demo.sh bin/sandglass
	hack/check.sh bin/sandglass

test: ## install what is missing, run all tests: test-host, then test-vm, and a table of both
	hack/setup.sh test
	hack/setup.sh compat || echo 'test: tests of programs that are missing are skipped'
	hack/test-all.sh $(TESTFLAGS)

test-host: ## all tests on this host alone
	hack/setup.sh test
	hack/test.sh $(TESTFLAGS) ./...
	@echo "the virtual machines were not run: make test-vm does that, make test does both"

test-vm: ## the tests in virtual machines: kernels with cgroup v2, systemd
	hack/test-vm.sh

test-quick: ## only the tests that need nothing installed
	hack/test.sh -short $(TESTFLAGS) ./pkg/... ./internal/... ./cmd/... ./seccomp-profiles/...

test-arm64: ## those on an emulated arm64 machine, which test-vm leaves out
	hack/test-vm.sh -only arm64

check: build ## prove the controls on this host
	hack/check.sh bin/sandglass

bench: build ## what sandboxes cost, beside other tools: time, throughput, memory, overhead; PARTS=-memory is one part alone
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w -buildid=" -o build/bench ./integration/bench
	build/bench -install $(PARTS) -sandglass bin/sandglass $(BENCHFLAGS)

bench-images: build ## imports of a large image, and twenty that share layers: time, memory, disk
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w -buildid=" -o build/bench ./integration/bench
	build/bench -images

soak: build ## good and hostile programs for MINUTES, 10 by default, and 64 clients of sessions as long: right verdicts, nothing left
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w -buildid=" -o build/soak ./integration/soak
	build/soak -minutes $(MINUTES) -sandglass bin/sandglass $(SOAKFLAGS)
	build/soak -sessions -minutes $(MINUTES) -sandglass bin/sandglass $(SOAKFLAGS)

fuzz: ## every parser of foreign content, each for FUZZTIME, 1m by default
	hack/fuzz.sh $(FUZZTIME) $(FUZZ)

lint: build/staticcheck-$(STATICCHECK_VERSION) ## gofmt, go vet and staticcheck, for amd64 and arm64
	hack/lint.sh $<

build/staticcheck-$(STATICCHECK_VERSION):
	GOBIN=$(CURDIR)/build $(GO) install honnef.co/go/tools/cmd/staticcheck@$(STATICCHECK_VERSION)
	mv build/staticcheck $@

bin/seccompc: $(shell find cmd/seccompc pkg/seccomp -name '*.go')
	CGO_ENABLED=1 $(GO) build -trimpath -tags libseccomp -o $@ ./cmd/seccompc

profiles: bin/seccompc ## compile seccomp-profiles/*.json
	bin/seccompc -all seccomp-profiles/*.json

check-profiles: bin/seccompc ## compare the compiled profiles with their sources
	bin/seccompc -all -check seccomp-profiles/*.json

install: build ## the binaries, pages, completions and documents below PREFIX, /usr/local; for one user PREFIX=$$HOME/.local
	$(GO) run ./packaging/dist -install -prefix "$(PREFIX)" -destdir "$(DESTDIR)" -bin "$(BIN)"

uninstall: ## remove what install has copied
	$(GO) run ./packaging/dist -uninstall -prefix "$(PREFIX)" -destdir "$(DESTDIR)"

clean: ## remove what was built
	rm -rf bin build out
