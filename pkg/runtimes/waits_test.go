package runtimes

import "testing"

// TestWaiting: the languages that can wait are ones of the table whose code alone
// can be run.
func TestWaiting(t *testing.T) {
	for _, lang := range waiting {
		if CodeFile(lang) == "" || !Waits(lang) {
			t.Errorf("%s has no file for its code", lang)
		}
	}
	if Waits("sh") || Waits("") || Waits("py") {
		t.Error("more than the list can wait")
	}
}

func TestStreams(t *testing.T) {
	for text, want := range map[string]bool{
		"print(1)":                  true,
		"":                          true,
		"# -*- coding: utf-8 -*-\n": true,
		"#!/usr/bin/python3\n# vim: fileencoding=utf-8": true,
		"# coding: latin-1\n":                           false,
		"# coding=utf8\n":                               false,
		"#!x\n#coding:cp1252\n":                         false,
		"\n\n# coding: latin-1\n":                       true,
	} {
		if Streams("python", []byte(text)) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
	if !Streams("node", []byte("// coding: latin-1\n")) {
		t.Error("node cares for encodings")
	}
}
