package main

import (
	"sandglass/internal/refusal"
	"sandglass/pkg/doctor"
)

func doctorCommand(args []string) int {
	asJSON, help, err := onlyJSON("doctor", args)
	switch {
	case err != nil:
		return fail(err)
	case help:
		return emit(usage("doctor"))
	}
	until := untilSignal(nil)
	defer until.stop()
	r, err := doctor.Examine(until.ctx)
	if s := until.got.Load(); s != 0 {
		return 128 + int(s)
	}
	if err != nil {
		return fail(err)
	}
	text := []byte(r.Text())
	if asJSON {
		if text, err = r.JSON(); err != nil {
			return fail(err)
		}
	}
	if code := emit(string(text)); code != 0 {
		return code
	}
	if !r.Starts() {
		return refusal.ExitRefused
	}
	return 0
}
