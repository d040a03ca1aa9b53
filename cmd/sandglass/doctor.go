package main

import (
	"sandglass/internal/refusal"
	"sandglass/pkg/doctor"
)

const doctorUsage = `usage: sandglass doctor [--json]

Tries each layer of the sandbox on this host, in throwaway children, and says
whether it works, why not, and what to paste. Exit code 0: a run with no flags
starts here; 125: it would be refused, and the last line says whether flags help.

  --json    one JSON object instead of lines, see docs/doctor.schema.json
`

func doctorCommand(args []string) int {
	asJSON, help, err := onlyJSON("doctor", args)
	switch {
	case err != nil:
		return fail(err)
	case help:
		return emit(doctorUsage)
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
