package policy

// planFlags are the flags of sandglass plan that run has not.
func planFlags() []Flag {
	return []Flag{
		{Name: "oci", Bool: true, Group: groupResult, Set: boolean(func(p *Parsed) *bool { return &p.OCI }),
			Help: "print the same policy as an OCI runtime configuration"},
		{Name: "bundle", Arg: "DIR", Group: groupResult, Set: text(func(p *Parsed) *string { return &p.Bundle }),
			Help: "write it to a new directory, with the root that it needs"},
	}
}

// learnFlags are the flags of sandglass profile learn that run has not.
func learnFlags() []Flag {
	return []Flag{
		{Name: "output", Short: "o", Arg: "FILE", Group: groupResult, Set: text(func(p *Parsed) *string { return &p.Output }),
			Help: "where the profile goes"},
		{Name: "merge", Arg: "OLD", Group: groupResult, Set: text(func(p *Parsed) *string { return &p.Merge }),
			Help: "add to what this profile allows"},
	}
}
