package policy

// PlanFlags are the flags of sandglass plan that run has not.
func PlanFlags() []Flag {
	return []Flag{
		{Name: "oci", Bool: true, Group: groupResult, Set: boolean(func(p *Parsed) *bool { return &p.OCI }),
			Help: "the same policy as the config.json of an OCI runtime (runc, crun). What that form cannot say is lost, and told on a " +
				"terminal: the limits on time and output, one scratch for all places, Landlock, an id for each run"},
		{Name: "bundle", Arg: "DIR", Group: groupResult, Set: text(func(p *Parsed) *string { return &p.Bundle }),
			Help: "make the directory DIR with that config.json and the root that it needs: runc run --bundle DIR NAME, as root"},
	}
}

// LearnFlags are the flags of sandglass profile learn that run has not.
func LearnFlags() []Flag {
	return []Flag{
		{Name: "output", Short: "o", Arg: "FILE", Group: groupResult, Set: text(func(p *Parsed) *string { return &p.Output }),
			Help: "where the profile goes"},
		{Name: "merge", Arg: "OLD", Group: groupResult, Set: text(func(p *Parsed) *string { return &p.Merge }),
			Help: "add to what this profile allows"},
	}
}
