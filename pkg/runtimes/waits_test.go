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
		"# coding utf-8 coding=latin-1\n":               false,
		"# coding: utf-8\n# coding=utf-8\n":             true,
		"#\r# coding: latin-1\r":                        false,
		"print(1)\n#PK\x05\x06":                         false,
		"PK\x03\x04":                                    true,
		"a\r1":                                          false, // Python 3.9's compiled code
		"\xa7\r\r\n":                                    false, // 3.11's
		"\x2b\x0e\r\n":                                  false, // 3.14's
		"a":                                             true,
	} {
		if Streams("python", []byte(text)) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
	if !Streams("node", []byte("// coding: latin-1\n")) {
		t.Error("node cares for encodings")
	}
}
