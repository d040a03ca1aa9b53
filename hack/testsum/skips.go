package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// rule is one line of the skips file: a skip whose reason matches is right on a
// machine that lacks the feature.
type rule struct {
	feature string
	reason  *regexp.Regexp
}

// readRules reads lines of "FEATURE REGEXP"; # starts a comment line.
func readRules(path string) ([]rule, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var rules []rule
	for n, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		feature, expr, ok := strings.Cut(line, " ")
		re, err := regexp.Compile(strings.TrimSpace(expr))
		if !ok || err != nil {
			return nil, fmt.Errorf("%s:%d: not FEATURE REGEXP: %v", path, n+1, err)
		}
		rules = append(rules, rule{feature, re})
	}
	return rules, nil
}

// judge says why a skip is wrong, or "". A skip that no rule knows is wrong
// too: somebody must have looked at it once. Without the list of what the
// machine has (SANDGLASS_MUST_RUN) every skip is only reported.
func judge(known []rule, must []string, reason string) string {
	if len(must) == 0 {
		return ""
	}
	for _, r := range known {
		if r.reason.MatchString(reason) {
			if slices.Contains(must, r.feature) {
				return "this machine has " + r.feature
			}
			return ""
		}
	}
	return "hack/skips.txt does not know this skip"
}
